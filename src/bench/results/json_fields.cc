#include "bench/results/json_fields.h"

#include <cmath>

namespace fulgur::bench {
namespace {

// Beyond this a double no longer tells neighbouring integers apart.
constexpr double kLargestExactInteger = 9007199254740992.0;

}  // namespace

std::optional<double> NumberOf(const JsonElement& element) {
  double value = 0.0;
  if (element.get(value) != simdjson::SUCCESS || !std::isfinite(value)) return std::nullopt;
  return value;
}

std::optional<int64_t> IntegerOf(const JsonElement& element) {
  int64_t value = 0;
  if (element.get(value) == simdjson::SUCCESS) return value;
  const std::optional<double> number = NumberOf(element);
  if (!number || std::fabs(*number) > kLargestExactInteger || *number != std::floor(*number)) {
    return std::nullopt;
  }
  return static_cast<int64_t>(*number);
}

std::optional<JsonElement> FieldAt(const JsonObject& object, std::string_view key) {
  JsonElement element;
  if (object.at_key(key).get(element) != simdjson::SUCCESS) return std::nullopt;
  return element;
}

std::optional<double> NumberAt(const JsonObject& object, std::string_view key) {
  const auto field = FieldAt(object, key);
  return field ? NumberOf(*field) : std::nullopt;
}

std::optional<int64_t> IntegerAt(const JsonObject& object, std::string_view key) {
  const auto field = FieldAt(object, key);
  return field ? IntegerOf(*field) : std::nullopt;
}

std::optional<bool> BoolAt(const JsonObject& object, std::string_view key) {
  bool value = false;
  if (object.at_key(key).get(value) != simdjson::SUCCESS) return std::nullopt;
  return value;
}

std::optional<JsonObject> ObjectAt(const JsonObject& object, std::string_view key) {
  JsonObject value;
  if (object.at_key(key).get(value) != simdjson::SUCCESS) return std::nullopt;
  return value;
}

std::optional<JsonArray> ArrayAt(const JsonObject& object, std::string_view key) {
  JsonArray value;
  if (object.at_key(key).get(value) != simdjson::SUCCESS) return std::nullopt;
  return value;
}

std::string TextAt(const JsonObject& object, std::string_view key) {
  std::string_view value;
  if (object.at_key(key).get(value) != simdjson::SUCCESS) return "";
  return std::string(value);
}

std::vector<JsonObject> ObjectsAt(const JsonObject& object, std::string_view key) {
  std::vector<JsonObject> objects;
  const auto array = ArrayAt(object, key);
  if (!array) return objects;
  for (const JsonElement element : *array) {
    JsonObject value;
    if (element.get(value) == simdjson::SUCCESS) objects.push_back(value);
  }
  return objects;
}

std::optional<std::vector<double>> NumbersAt(const JsonObject& object, std::string_view key) {
  const auto array = ArrayAt(object, key);
  if (!array) return std::nullopt;
  std::vector<double> numbers;
  for (const JsonElement element : *array) {
    const auto number = NumberOf(element);
    if (!number) return std::nullopt;
    numbers.push_back(*number);
  }
  return numbers;
}

std::vector<std::string> TextsAt(const JsonObject& object, std::string_view key) {
  std::vector<std::string> texts;
  const auto array = ArrayAt(object, key);
  if (!array) return texts;
  for (const JsonElement element : *array) {
    std::string_view text;
    if (element.get(text) == simdjson::SUCCESS) texts.emplace_back(text);
  }
  return texts;
}

std::map<std::string, std::string> TextMapAt(const JsonObject& object, std::string_view key) {
  std::map<std::string, std::string> texts;
  const auto inner = ObjectAt(object, key);
  if (!inner) return texts;
  for (const auto field : *inner) {
    std::string_view text;
    if (field.value.get(text) == simdjson::SUCCESS) texts[std::string(field.key)] = text;
  }
  return texts;
}

}  // namespace fulgur::bench

#include "model/config_fields.h"

#include "fmt/format.h"

namespace fulgur::model {

using simdjson::SUCCESS;
using simdjson::dom::element;

std::optional<element> ConfigFields::Find(std::string_view name) const {
  element value;
  if (object_.at_key(name).get(value) != SUCCESS || value.is_null()) return std::nullopt;
  return value;
}

void ConfigFields::Refuse(std::string_view name, std::string_view accepted) {
  if (!status_.ok()) return;
  const std::optional<element> value = Find(name);
  const std::string found = value.has_value() ? "is " + io::Shortened(simdjson::minify(*value))
                                              : std::string("is missing");
  status_ = absl::InvalidArgumentError(
      fmt::format("{}: \"{}\" {}; expected {}", source_, name, found, accepted));
}

int64_t ConfigFields::Int(std::string_view name, int64_t low, int64_t high,
                          std::optional<int64_t> fallback) {
  const std::optional<element> value = Find(name);
  if (!value.has_value() && fallback.has_value()) return *fallback;
  int64_t number = 0;
  if (!value.has_value() || value->get(number) != SUCCESS || number < low || number > high) {
    Refuse(name, fmt::format("an integer from {} to {}", low, high));
    return low;
  }
  return number;
}

float ConfigFields::Number(std::string_view name, double low, double high,
                           std::optional<float> fallback) {
  const std::optional<element> value = Find(name);
  if (!value.has_value() && fallback.has_value()) return *fallback;
  double number = 0;
  if (!value.has_value() || value->get(number) != SUCCESS || !(number >= low && number <= high)) {
    Refuse(name, fmt::format("a number from {} to {}", low, high));
    return static_cast<float>(low);
  }
  return static_cast<float>(number);
}

bool ConfigFields::Bool(std::string_view name, bool fallback) {
  const std::optional<element> value = Find(name);
  if (!value.has_value()) return fallback;
  bool flag = fallback;
  if (value->get(flag) != SUCCESS) Refuse(name, "true or false");
  return flag;
}

void ConfigFields::RequireText(std::string_view name, std::string_view accepted) {
  const std::optional<element> value = Find(name);
  if (!value.has_value()) return;
  std::string_view text;
  if (value->get(text) != SUCCESS || text != accepted) {
    Refuse(name, fmt::format("\"{}\"", accepted));
  }
}

void ConfigFields::RequireInt(std::string_view name, int64_t accepted) {
  const std::optional<element> value = Find(name);
  if (!value.has_value()) return;
  int64_t number = 0;
  if (value->get(number) != SUCCESS || number != accepted) Refuse(name, std::to_string(accepted));
}

void ConfigFields::RequireFalse(std::string_view name) {
  if (Bool(name, false)) Refuse(name, "false");
}

std::vector<int64_t> ConfigFields::Ints(std::string_view name, int64_t low, int64_t high,
                                        bool required) {
  const std::optional<element> value = Find(name);
  if (!value.has_value() && !required) return {};
  std::vector<int64_t> numbers;
  simdjson::dom::array list;
  bool good = value.has_value() && value->get(list) == SUCCESS;
  if (good) {
    for (const element item : list) {
      int64_t number = 0;
      good = good && item.get(number) == SUCCESS && number >= low && number <= high;
      numbers.push_back(number);
    }
  }
  if (good) return numbers;
  Refuse(name, fmt::format("a list of integers from {} to {}", low, high));
  return {};
}

std::vector<int32_t> ConfigFields::Tokens(std::string_view name, int64_t vocab_size) {
  const std::optional<element> value = Find(name);
  if (!value.has_value()) return {};
  std::vector<int64_t> ids = value->is_array() ? Ints(name, 0, vocab_size - 1, false)
                                               : std::vector{Int(name, 0, vocab_size - 1)};
  return {ids.begin(), ids.end()};
}

}  // namespace fulgur::model

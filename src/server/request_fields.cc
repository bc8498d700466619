#include "server/request_fields.h"

#include <fmt/format.h>
#include <simdjson.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

#include "base/status_macros.h"
#include "server/api_error.h"
#include "text/utf8.h"

namespace fulgur::server {
namespace {

namespace ondemand = simdjson::ondemand;
using simdjson::error_code;
using text::JsonValue;

constexpr int kMaxDepth = 128;
constexpr int64_t kMaxValues = 10'000'000;
constexpr int64_t kMaxId = std::numeric_limits<int32_t>::max();

// Visits every value, so that nothing malformed hides in a part nobody asks for: simdjson's
// on-demand parser checks only what is touched.
class Checker {
 public:
  error_code Check(ondemand::value value, int depth) {
    if (depth > kMaxDepth) return simdjson::DEPTH_ERROR;
    if (++count_ > kMaxValues) return simdjson::CAPACITY;
    ondemand::json_type type;
    if (auto error = value.type().get(type)) return error;
    switch (type) {
      case ondemand::json_type::array:
        return CheckArray(value, depth);
      case ondemand::json_type::object:
        return CheckObject(value, depth);
      case ondemand::json_type::string:
        return value.get_string().error();
      case ondemand::json_type::number:
        return value.get_double().error();
      case ondemand::json_type::boolean:
        return value.get_bool().error();
      case ondemand::json_type::null:
        return CheckNull(value);
    }
    return simdjson::TAPE_ERROR;
  }

 private:
  static error_code CheckNull(ondemand::value value) {
    bool is_null = false;
    if (auto error = value.is_null().get(is_null)) return error;
    return is_null ? simdjson::SUCCESS : simdjson::N_ATOM_ERROR;
  }

  error_code CheckArray(ondemand::value value, int depth) {
    ondemand::array array;
    if (auto error = value.get_array().get(array)) return error;
    for (auto item : array) {
      ondemand::value element;
      if (auto error = item.get(element)) return error;
      if (auto error = Check(element, depth + 1)) return error;
    }
    return simdjson::SUCCESS;
  }

  error_code CheckObject(ondemand::value value, int depth) {
    ondemand::object object;
    if (auto error = value.get_object().get(object)) return error;
    for (simdjson::simdjson_result<ondemand::field> member : object) {
      ondemand::field field;
      if (auto error = std::move(member).get(field)) return error;
      if (auto error = field.unescaped_key().error()) return error;
      if (auto error = Check(field.value(), depth + 1)) return error;
    }
    return simdjson::SUCCESS;
  }

  int64_t count_ = 0;
};

std::string_view TrimEnd(std::string_view json) {
  size_t end = json.find_last_not_of(" \t\r\n");
  return json.substr(0, end + 1);
}

// simdjson knows that a body is broken; our own parser knows where and what was expected.
absl::Status SyntaxError(std::string_view body, error_code error) {
  absl::Status found = text::CheckJson(body);
  if (found.ok()) {
    return MalformedError(
        fmt::format("The body is not valid JSON: {}", simdjson::error_message(error)));
  }
  return MalformedError(fmt::format("The body is {}.", std::string(found.message())));
}

absl::Status JsonError(std::string_view body, error_code error) {
  switch (error) {
    case simdjson::DEPTH_ERROR:
      return MalformedError(fmt::format("The JSON body nests deeper than {} levels.", kMaxDepth));
    case simdjson::CAPACITY:
      return MalformedError(fmt::format("The JSON body has more than {} values.", kMaxValues));
    case simdjson::UTF8_ERROR:
      return MalformedError(fmt::format("The body is not valid UTF-8 at byte {}; JSON must be.",
                                        text::ValidUtf8Prefix(body)));
    case simdjson::EMPTY:
      return MalformedError("The request has no body; a JSON object is needed.");
    default:
      return SyntaxError(body, error);
  }
}

// The text of a scalar; empty for lists and objects.
std::string_view Scalar(const JsonValue& value) {
  switch (value.type()) {
    case JsonValue::Type::kString:
      return value.string();
    case JsonValue::Type::kInteger:
    case JsonValue::Type::kNumber:
      return value.number_spelling();
    case JsonValue::Type::kBoolean:
      return value.boolean() ? "true" : "false";
    default:
      return "";
  }
}

std::optional<double> ParseDouble(std::string_view text) {
  double number = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  if (!std::isfinite(number)) return std::nullopt;
  return number;
}

std::optional<bool> ParseBool(std::string_view text) {
  for (std::string_view yes : {"true", "1", "on", "t", "y", "yes"}) {
    if (EqualsIgnoreCase(text, yes)) return true;
  }
  for (std::string_view no : {"false", "0", "off", "f", "n", "no"}) {
    if (EqualsIgnoreCase(text, no)) return false;
  }
  return std::nullopt;
}

}  // namespace

absl::StatusOr<RequestFields> RequestFields::Parse(std::string body) {
  RequestFields fields;
  fields.body_ = std::move(body);
  const std::string& text = fields.body_;
  fields.body_.reserve(text.size() + simdjson::SIMDJSON_PADDING);

  ondemand::parser parser;
  ondemand::document document;
  if (auto error = parser.iterate(text.data(), text.size(), text.capacity()).get(document)) {
    return JsonError(text, error);
  }
  ondemand::json_type type;
  if (auto error = document.type().get(type)) return JsonError(text, error);
  if (type != ondemand::json_type::object) {
    return MalformedError(
        "Input should be a valid dictionary: the body must be a JSON object, such as "
        "{\"messages\": [...]}.");
  }
  ondemand::object object;
  if (auto error = document.get_object().get(object)) return JsonError(text, error);
  Checker checker;
  for (simdjson::simdjson_result<ondemand::field> member : object) {
    ondemand::field field;
    if (auto error = std::move(member).get(field)) return JsonError(text, error);
    std::string_view key;
    if (auto error = field.unescaped_key().get(key)) return JsonError(text, error);
    std::string name(key);
    const char* begin = field.value().raw_json_token().data();
    if (auto error = checker.Check(field.value(), 1)) return JsonError(text, error);
    const char* end = text.data() + text.size();
    if (const char* at; !document.current_location().get(at)) end = at;
    auto start = static_cast<size_t>(begin - text.data());
    fields.fields_[name] = {start, static_cast<size_t>(end - begin)};
  }
  if (document.current_location().error() != simdjson::OUT_OF_BOUNDS) {
    return JsonError(text, simdjson::TRAILING_CONTENT);
  }
  return fields;
}

std::optional<std::string_view> RequestFields::Raw(std::string_view name) const {
  auto found = fields_.find(name);
  if (found == fields_.end()) return std::nullopt;
  auto [offset, length] = found->second;
  std::string_view json = TrimEnd(std::string_view(body_).substr(offset, length));
  if (json == "null") return std::nullopt;
  return json;
}

absl::StatusOr<RequestFields> RequestFields::Object(std::string_view name) const {
  auto raw = Raw(name);
  if (!raw) return RequestFields();
  if (raw->front() != '{') return WrongType(name, "dictionary");
  ASSIGN_OR_RETURN(RequestFields object, Parse(std::string(*raw)));
  object.prefix_ = fmt::format("{}{}.", prefix_, name);
  return object;
}

absl::Status RequestFields::WrongType(std::string_view name, std::string_view wanted) const {
  std::string_view raw = Raw(name).value_or("null");
  std::string shown(raw.substr(0, 100));
  if (raw.size() > shown.size()) shown = text::RepairUtf8(shown) + "...";
  return MalformedError(
      fmt::format("{}{}: Input should be a valid {}, got {}.", prefix_, name, wanted, shown),
      fmt::format("{}{}", prefix_, name));
}

absl::StatusOr<JsonValue> RequestFields::Value(std::string_view name) const {
  auto value = text::ParseJson(*Raw(name));
  if (!value.ok()) {
    return WithParam(MalformedError(fmt::format("{}{}: {}", prefix_, name,
                                                std::string(value.status().message()))),
                     name);
  }
  return value;
}

absl::StatusOr<double> RequestFields::ToNumber(std::string_view name,
                                               const JsonValue& value) const {
  if (value.type() == JsonValue::Type::kBoolean) return value.boolean() ? 1.0 : 0.0;
  std::optional<double> number;
  if (!value.is_object() && !value.is_array()) number = ParseDouble(Scalar(value));
  if (!number) return WrongType(name, "number");
  return *number;
}

absl::StatusOr<int64_t> RequestFields::ToInteger(std::string_view name, const JsonValue& value,
                                                 int64_t low, int64_t high) const {
  std::string_view spelling = Scalar(value);
  int64_t integer = 0;
  auto [end, error] = std::from_chars(spelling.data(), spelling.data() + spelling.size(), integer);
  if (error != std::errc() || end != spelling.data() + spelling.size()) {
    ASSIGN_OR_RETURN(double number, ToNumber(name, value));
    if (number != std::floor(number) || std::abs(number) > 9e15) return WrongType(name, "integer");
    integer = static_cast<int64_t>(number);
  }
  if (integer < low || integer > high) {
    return WrongType(name, fmt::format("integer between {} and {}", low, high));
  }
  return integer;
}

absl::Status RequestFields::Read(std::string_view name, bool* value) const {
  if (!Has(name)) return absl::OkStatus();
  ASSIGN_OR_RETURN(JsonValue json, Value(name));
  std::optional<bool> flag = ParseBool(Scalar(json));
  if (!flag) return WrongType(name, "boolean");
  *value = *flag;
  return absl::OkStatus();
}

absl::Status RequestFields::Read(std::string_view name, int32_t* value) const {
  if (!Has(name)) return absl::OkStatus();
  using Limits = std::numeric_limits<int32_t>;
  ASSIGN_OR_RETURN(JsonValue json, Value(name));
  ASSIGN_OR_RETURN(int64_t integer, ToInteger(name, json, Limits::min(), Limits::max()));
  *value = static_cast<int32_t>(integer);
  return absl::OkStatus();
}

absl::Status RequestFields::Read(std::string_view name, int64_t* value) const {
  if (!Has(name)) return absl::OkStatus();
  using Limits = std::numeric_limits<int64_t>;
  ASSIGN_OR_RETURN(JsonValue json, Value(name));
  ASSIGN_OR_RETURN(*value, ToInteger(name, json, Limits::min(), Limits::max()));
  return absl::OkStatus();
}

absl::Status RequestFields::Read(std::string_view name, float* value) const {
  if (!Has(name)) return absl::OkStatus();
  ASSIGN_OR_RETURN(JsonValue json, Value(name));
  ASSIGN_OR_RETURN(double number, ToNumber(name, json));
  if (std::abs(number) > std::numeric_limits<float>::max()) return WrongType(name, "number");
  *value = static_cast<float>(number);
  return absl::OkStatus();
}

absl::Status RequestFields::Read(std::string_view name, std::string* value) const {
  if (!Has(name)) return absl::OkStatus();
  ASSIGN_OR_RETURN(JsonValue json, Value(name));
  if (!json.is_string()) return WrongType(name, "string");
  *value = json.string();
  return absl::OkStatus();
}

absl::Status RequestFields::Read(std::string_view name, std::vector<int32_t>* values) const {
  if (!Has(name)) return absl::OkStatus();
  return WithParam(ParseIdList(*Raw(name), name, values), name);
}

absl::Status RequestFields::Read(std::string_view name, std::vector<std::string>* values) const {
  if (!Has(name)) return absl::OkStatus();
  ASSIGN_OR_RETURN(JsonValue json, Value(name));
  if (!json.is_array()) return WrongType(name, "list");
  for (JsonValue& item : json.items()) {
    if (!item.is_string()) return WrongType(name, "list of strings");
    values->push_back(item.string());
  }
  return absl::OkStatus();
}

absl::Status RequestFields::ReadTextOrList(std::string_view name,
                                           std::vector<std::string>* values) const {
  if (!Has(name)) return absl::OkStatus();
  if (Raw(name)->front() == '[') return Read(name, values);
  if (Raw(name)->front() != '"') return WrongType(name, "string or list of strings");
  return Read(name, &values->emplace_back());
}

absl::Status RequestFields::ReadIdMap(std::string_view name,
                                      std::vector<std::pair<int64_t, float>>* map) const {
  if (!Has(name)) return absl::OkStatus();
  ASSIGN_OR_RETURN(JsonValue json, Value(name));
  if (!json.is_object()) return WrongType(name, "dictionary");
  for (const auto& [key, bias] : json.members()) {
    ASSIGN_OR_RETURN(int64_t id, ToInteger(name, JsonValue::String(key), -1, kMaxId));
    ASSIGN_OR_RETURN(double number, ToNumber(name, bias));
    map->emplace_back(id, static_cast<float>(std::clamp(number, -100.0, 100.0)));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<std::string_view>> SplitList(std::string_view json,
                                                        std::string_view name) {
  ondemand::parser parser;
  simdjson::padded_string padded(json);
  ondemand::document document;
  ondemand::array array;
  auto wrong = [&] {
    return MalformedError(fmt::format("{}: Input should be a valid list.", name), name);
  };
  if (parser.iterate(padded).get(document) || document.get_array().get(array)) return wrong();
  std::vector<std::string_view> items;
  for (auto item : array) {
    ondemand::value value;
    if (item.get(value)) return wrong();
    const char* begin = value.raw_json_token().data();
    if (Checker().Check(value, 1)) return wrong();
    const char* end = padded.data() + padded.size();
    if (const char* at; !document.current_location().get(at)) end = at;
    auto offset = static_cast<size_t>(begin - padded.data());
    items.push_back(TrimEnd(json.substr(offset, static_cast<size_t>(end - begin))));
  }
  return items;
}

absl::Status ParseIdList(std::string_view json, std::string_view name, std::vector<int32_t>* ids) {
  ondemand::parser parser;
  simdjson::padded_string padded(json);
  ondemand::document document;
  ondemand::array array;
  auto wrong = [&] {
    return MalformedError(fmt::format("{}: Input should be a list of token ids.", name), name);
  };
  if (parser.iterate(padded).get(document) || document.get_array().get(array)) return wrong();
  for (auto item : array) {
    double id = 0;
    if (item.get_double().get(id) || id != std::floor(id)) return wrong();
    if (id < 0 || id > static_cast<double>(kMaxId)) {
      return RuleError(fmt::format("Token id {} is out of vocabulary",
                                   static_cast<int64_t>(std::clamp(id, -1e15, 1e15))),
                       name);
    }
    ids->push_back(static_cast<int32_t>(id));
  }
  return absl::OkStatus();
}

}  // namespace fulgur::server

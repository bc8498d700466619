#include "text/tool_schema.h"

#include <algorithm>
#include <array>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "base/status_macros.h"

namespace fulgur::text {
namespace {

using Type = JsonValue::Type;

JsonTypes TypeBit(const JsonValue& value) {
  switch (value.type()) {
    case Type::kNull:
      return kNullBit;
    case Type::kBoolean:
      return kBooleanBit;
    case Type::kInteger:
      return kIntegerBit;
    case Type::kNumber:
      return kNumberBit;
    case Type::kString:
      return kStringBit;
    case Type::kArray:
      return kArrayBit;
    case Type::kObject:
      return kObjectBit;
  }
  return 0;
}

JsonTypes NamedType(std::string_view name) {
  struct Entry {
    std::string_view name;
    JsonTypes bit;
  };
  static constexpr Entry kNames[] = {
      {"string", kStringBit},   {"str", kStringBit},   {"text", kStringBit},
      {"integer", kIntegerBit}, {"int", kIntegerBit},  {"long", kIntegerBit},
      {"number", kNumberBit},   {"float", kNumberBit}, {"double", kNumberBit},
      {"boolean", kBooleanBit}, {"bool", kBooleanBit}, {"object", kObjectBit},
      {"dict", kObjectBit},     {"map", kObjectBit},   {"array", kArrayBit},
      {"list", kArrayBit},      {"tuple", kArrayBit},  {"null", kNullBit},
      {"none", kNullBit},
  };
  for (const Entry& entry : kNames) {
    if (entry.name == name) return entry.bit;
  }
  return 0;
}

constexpr std::array<std::string_view, 3> kUnions = {"anyOf", "oneOf", "allOf"};

// The member `key` of the schema itself or of the first branch of a union that has it.
const JsonValue* FindKeyword(const JsonValue& schema, std::string_view key) {
  if (const JsonValue* own = schema.Find(key)) return own;
  for (std::string_view name : kUnions) {
    const JsonValue* branches = schema.Find(name);
    if (branches == nullptr) continue;
    for (const JsonValue& branch : branches->items()) {
      if (const JsonValue* found = FindKeyword(branch, key)) return found;
    }
  }
  return nullptr;
}

bool IsAllowed(const JsonValue& value, JsonTypes types) {
  const JsonTypes bit = TypeBit(value);
  return (types & bit) != 0 || (bit == kIntegerBit && (types & kNumberBit) != 0);
}

std::string_view Trim(std::string_view text) {
  constexpr std::string_view kSpace = " \t\n\r\f\v";
  const size_t begin = text.find_first_not_of(kSpace);
  if (begin == text.npos) return "";
  return text.substr(begin, text.find_last_not_of(kSpace) + 1 - begin);
}

std::string Lower(std::string_view text) { return absl::AsciiStrToLower(std::string(text)); }

// Digits with a sign, written as JSON: without plus and leading zeros.
std::optional<JsonValue> ReadInteger(std::string_view text) {
  const bool negative = text.starts_with('-');
  if (negative || text.starts_with('+')) text.remove_prefix(1);
  if (text.empty() || text.find_first_not_of("0123456789") != text.npos) return std::nullopt;
  text.remove_prefix(std::min(text.find_first_not_of('0'), text.size() - 1));
  return JsonValue::Number((negative ? "-" : "") + std::string(text));
}

std::optional<JsonValue> ReadBoolean(std::string_view text) {
  const std::string word = Lower(text);
  if (word == "true" || word == "1") return JsonValue::Boolean(true);
  if (word == "false" || word == "0") return JsonValue::Boolean(false);
  return std::nullopt;
}

// The value that `text` spells as one of `types`, most specific first.
std::optional<JsonValue> ReadAs(JsonTypes types, std::string_view text) {
  text = Trim(text);
  if ((types & kNullBit) != 0 && Lower(text) == "null") return JsonValue();
  if ((types & kIntegerBit) != 0) {
    if (auto integer = ReadInteger(text)) return integer;
  }
  const JsonTypes parsed_types = types & (kNumberBit | kObjectBit | kArrayBit);
  auto parsed = parsed_types != 0 ? ParseJson(text) : absl::StatusOr<JsonValue>(JsonValue());
  if (parsed.ok() && (types & kNumberBit) != 0 && IsAllowed(*parsed, kNumberBit)) return *parsed;
  if ((types & kBooleanBit) != 0) {
    if (auto boolean = ReadBoolean(text)) return boolean;
  }
  if (parsed.ok() && IsAllowed(*parsed, types & (kObjectBit | kArrayBit))) return *parsed;
  return std::nullopt;
}

void CorrectMembers(JsonValue* value, const JsonValue* schema) {
  if (schema == nullptr) return;
  if (const JsonValue* properties = FindKeyword(*schema, "properties")) {
    for (auto& [key, member] : value->members()) {
      member = CorrectValue(std::move(member), properties->Find(key));
    }
  }
  if (const JsonValue* items = FindKeyword(*schema, "items")) {
    for (JsonValue& item : value->items()) item = CorrectValue(std::move(item), items);
  }
}

JsonValue ReadAsOrString(JsonTypes types, std::string_view text, const JsonValue* schema) {
  std::optional<JsonValue> read = ReadAs(types, text);
  if (!read.has_value()) return JsonValue::String(std::string(text));
  CorrectMembers(&*read, schema);
  return *std::move(read);
}

bool Fits(const JsonValue& value, const JsonValue* schema) {
  const JsonTypes types = AllowedTypes(schema);
  return types == 0 || IsAllowed(value, types);
}

}  // namespace

JsonTypes AllowedTypes(const JsonValue* schema) {
  if (schema == nullptr) return 0;
  JsonTypes types = 0;
  if (const JsonValue* type = schema->Find("type")) {
    if (type->is_string()) types |= NamedType(Lower(type->string()));
    for (const JsonValue& name : type->items()) {
      if (name.is_string()) types |= NamedType(Lower(name.string()));
    }
  }
  if (const JsonValue* values = schema->Find("enum")) {
    for (const JsonValue& value : values->items()) types |= TypeBit(value);
  }
  if (const JsonValue* value = schema->Find("const")) types |= TypeBit(*value);
  for (std::string_view name : kUnions) {
    const JsonValue* branches = schema->Find(name);
    if (branches == nullptr) continue;
    for (const JsonValue& branch : branches->items()) types |= AllowedTypes(&branch);
  }
  return types;
}

absl::StatusOr<ToolSchemas> ToolSchemas::FromJson(std::string_view tools_json) {
  ASSIGN_OR_RETURN(const JsonValue list, ParseJson(tools_json));
  if (!list.is_array()) return absl::InvalidArgumentError("`tools` must be a list");
  ToolSchemas schemas;
  for (const JsonValue& tool : list.items()) {
    const JsonValue* function = tool.Find("function");
    const JsonValue* name = function == nullptr ? nullptr : function->Find("name");
    if (name == nullptr || !name->is_string()) {
      return absl::InvalidArgumentError("every entry of `tools` needs a function with a name");
    }
    const JsonValue* parameters = function->Find("parameters");
    schemas.tools_.emplace_back(name->string(), parameters == nullptr ? JsonValue() : *parameters);
  }
  return schemas;
}

const JsonValue* ToolSchemas::Parameters(std::string_view tool) const {
  for (const auto& [name, parameters] : tools_) {
    if (name == tool) return &parameters;
  }
  return nullptr;
}

const JsonValue* ToolSchemas::Parameter(std::string_view tool, std::string_view parameter) const {
  const JsonValue* parameters = Parameters(tool);
  const JsonValue* properties =
      parameters == nullptr ? nullptr : FindKeyword(*parameters, "properties");
  return properties == nullptr ? nullptr : properties->Find(parameter);
}

bool ToolSchemas::MayBeWrapper(std::string_view tool, std::string_view parameter) const {
  if (parameter != "arguments" && parameter != "input") return false;
  const JsonValue* parameters = Parameters(tool);
  const JsonValue* properties =
      parameters == nullptr ? nullptr : FindKeyword(*parameters, "properties");
  return properties != nullptr && !properties->members().empty() &&
         properties->Find(parameter) == nullptr;
}

std::optional<JsonValue> ToolSchemas::Unwrap(std::string_view tool, const JsonValue& value) const {
  if (value.is_string()) {
    const absl::StatusOr<JsonValue> inner = ParseJson(value.string());
    return inner.ok() && inner->is_object() ? Unwrap(tool, *inner) : std::nullopt;
  }
  if (!value.is_object()) return std::nullopt;
  for (const auto& [key, member] : value.members()) {
    if (Parameter(tool, key) == nullptr) return std::nullopt;
  }
  return CorrectArguments(tool, value);
}

JsonValue ToolSchemas::CorrectArguments(std::string_view tool, JsonValue arguments) const {
  CorrectMembers(&arguments, Parameters(tool));
  return arguments;
}

bool IsCertainlyString(const JsonValue* schema) {
  const JsonTypes types = AllowedTypes(schema);
  return types == 0 || (types & kStringBit) != 0;
}

JsonValue CorrectParameter(std::string_view text, bool is_string, const JsonValue* schema) {
  if (is_string && IsCertainlyString(schema)) return JsonValue::String(std::string(text));
  if (!is_string) {
    absl::StatusOr<JsonValue> value = ParseJson(Trim(text));
    if (value.ok() && (value->is_string() || Fits(*value, schema))) {
      return CorrectValue(*std::move(value), schema);
    }
  }
  return ReadAsOrString(AllowedTypes(schema), text, schema);
}

JsonValue CorrectValue(JsonValue value, const JsonValue* schema) {
  if (Fits(value, schema)) {
    CorrectMembers(&value, schema);
    return value;
  }
  const std::string spelling =
      value.is_string() ? value.string() : WriteJson(value, NumberStyle::kAsWritten);
  return ReadAsOrString(AllowedTypes(schema), spelling, schema);
}

}  // namespace fulgur::text

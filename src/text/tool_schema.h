// The tools a request declares, as far as reading a model's calls needs them: names and parameter
// types. Corrects argument values that the model typed differently from the schema.
//
// Immutable after construction; may be shared between threads.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "text/json.h"

namespace fulgur::text {

// A set of JSON types, as bits, so that "no type known" is simply empty.
enum JsonTypeBit : uint8_t {
  kNullBit = 1,
  kIntegerBit = 2,
  kNumberBit = 4,
  kBooleanBit = 8,
  kObjectBit = 16,
  kArrayBit = 32,
  kStringBit = 64,
};
using JsonTypes = uint8_t;

// The types a JSON Schema allows: `type`, the types of `enum` and `const` values, and the union
// over anyOf, oneOf and allOf. Common aliases (str, int, dict, ...) count. Empty if nothing is
// said, or for a null schema.
JsonTypes AllowedTypes(const JsonValue* schema);

class ToolSchemas {
 public:
  ToolSchemas() = default;

  // Reads an OpenAI `tools` array: [{"type": "function", "function": {"name", "parameters"}}].
  // Fails only on text that is not a JSON array of objects with a function name.
  static absl::StatusOr<ToolSchemas> FromJson(std::string_view tools_json);

  bool Declares(std::string_view tool) const { return Parameters(tool) != nullptr; }

  // The schema of one parameter; null if tool or parameter are unknown.
  const JsonValue* Parameter(std::string_view tool, std::string_view parameter) const;

  // A model sometimes packs all arguments into one parameter called "arguments" or "input". True if
  // `parameter` is so called and the tool declares others but not this one.
  bool MayBeWrapper(std::string_view tool, std::string_view parameter) const;

  // The packed arguments if `value` is an object (or text of one) with declared keys only.
  std::optional<JsonValue> Unwrap(std::string_view tool, const JsonValue& value) const;

  // Corrects the members of an arguments object by the tool's schema.
  JsonValue CorrectArguments(std::string_view tool, JsonValue arguments) const;

 private:
  // The schema of a tool's parameters object (a JSON null if it has none); null: unknown tool.
  const JsonValue* Parameters(std::string_view tool) const;

  std::vector<std::pair<std::string, JsonValue>> tools_;  // name -> parameters schema (or null)
};

// True if a parameter whose tag says string="true" is certainly a string, so that its text can be
// passed on while it arrives.
bool IsCertainlyString(const JsonValue* schema);

// The value of a parameter from the text between its tags. `is_string` is what its tag says (false
// also if it says nothing). Text that fits no allowed type stays a string.
JsonValue CorrectParameter(std::string_view text, bool is_string, const JsonValue* schema);

// Applies the same correction to a parsed value and, recursively, to its members and items.
JsonValue CorrectValue(JsonValue value, const JsonValue* schema);

}  // namespace fulgur::text

// JSON values that keep what conversion to numbers and maps would lose: the order of members and
// the spelling of numbers. Used where text goes to the model or comes from it and bytes matter.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"

namespace fulgur::text {

class JsonValue {
 public:
  enum class Type { kNull, kBoolean, kInteger, kNumber, kString, kArray, kObject };
  using Member = std::pair<std::string, JsonValue>;

  JsonValue() = default;
  static JsonValue Boolean(bool value);
  static JsonValue Number(std::string spelling);  // a valid JSON number
  static JsonValue String(std::string text);
  static JsonValue Array(std::vector<JsonValue> items);
  static JsonValue Object(std::vector<Member> members);

  Type type() const { return type_; }
  bool is_null() const { return type_ == Type::kNull; }
  bool is_string() const { return type_ == Type::kString; }
  bool is_object() const { return type_ == Type::kObject; }
  bool is_array() const { return type_ == Type::kArray; }

  bool boolean() const { return text_ == "true"; }
  const std::string& string() const { return text_; }           // kString
  const std::string& number_spelling() const { return text_; }  // kInteger, kNumber
  const std::vector<JsonValue>& items() const { return items_; }
  const std::vector<Member>& members() const { return members_; }
  std::vector<JsonValue>& items() { return items_; }
  std::vector<Member>& members() { return members_; }

  // The member of that name, or null if this is no object or has none.
  const JsonValue* Find(std::string_view key) const;

 private:
  Type type_ = Type::kNull;
  std::string text_;
  std::vector<JsonValue> items_;
  std::vector<Member> members_;
};

// Strict JSON (RFC 8259) in UTF-8, surrounding white space allowed. A repeated key keeps its first
// place and takes its last value. Refused: NaN and infinities, numbers that overflow a double,
// unpaired surrogates, nesting deeper than 128.
absl::StatusOr<JsonValue> ParseJson(std::string_view text);

// The same checks, without the memory that the values would take.
absl::Status CheckJson(std::string_view text);

enum class NumberStyle {
  kAsWritten,  // digits are passed through
  kPython,     // as Python's json module prints what it parsed: 1.10 -> 1.1, 1E5 -> 100000.0
};

// One line with separators ", " and ": ", non-ASCII characters unescaped: what Python's
// json.dumps(value, ensure_ascii=False) prints, and what the model has seen in training.
std::string WriteJson(const JsonValue& value, NumberStyle style);

// Appends `text` escaped for the inside of a JSON string (no quotes around it).
void AppendJsonEscaped(std::string_view text, std::string* out);

}  // namespace fulgur::text

#include "text/json.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <iterator>
#include <optional>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "base/status_macros.h"
#include "text/utf8.h"

namespace fulgur::text {
namespace {

constexpr int kMaxDepth = 128;

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

// Recursive descent over text that is known to be UTF-8.
class Parser {
 public:
  // Without `keep` lists and objects come out empty: enough to find what is wrong.
  Parser(std::string_view text, bool keep) : text_(text), keep_(keep) {}

  absl::StatusOr<JsonValue> Document() {
    ASSIGN_OR_RETURN(JsonValue value, Value(0));
    SkipSpace();
    if (at_ < text_.size()) return Error("text after the end of the value");
    return value;
  }

 private:
  absl::Status Error(std::string_view what) const {
    const std::string_view before = text_.substr(0, at_);
    const size_t line_begin = before.rfind('\n') + 1;  // npos + 1 is 0
    const auto is_character = [](char c) { return (c & 0xC0) != 0x80; };
    return absl::InvalidArgumentError(
        fmt::format("not valid JSON at line {}, column {} (byte {}): {}{}",
                    1 + std::count(before.begin(), before.end(), '\n'),
                    1 + std::count_if(before.begin() + static_cast<ptrdiff_t>(line_begin),
                                      before.end(), is_character),
                    at_, what, at_ == text_.size() ? "; the text ends here" : ""));
  }

  void SkipSpace() {
    while (at_ < text_.size() && std::string_view(" \t\n\r").find(text_[at_]) != text_.npos) ++at_;
  }

  bool Take(char c) {
    if (at_ == text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }

  bool TakeWord(std::string_view word) {
    if (text_.substr(at_, word.size()) != word) return false;
    at_ += word.size();
    return true;
  }

  absl::StatusOr<JsonValue> Value(int depth) {
    if (depth > kMaxDepth) {
      return Error(fmt::format("nested deeper than {} levels", kMaxDepth));
    }
    SkipSpace();
    if (Take('{')) return ObjectBody(depth);
    if (Take('[')) return ArrayBody(depth);
    if (Take('"')) {
      ASSIGN_OR_RETURN(std::string text, StringBody());
      return JsonValue::String(std::move(text));
    }
    if (TakeWord("null")) return JsonValue();
    if (TakeWord("true")) return JsonValue::Boolean(true);
    if (TakeWord("false")) return JsonValue::Boolean(false);
    return NumberBody();
  }

  absl::StatusOr<JsonValue> ObjectBody(int depth) {
    std::vector<JsonValue::Member> members;
    absl::flat_hash_map<std::string, size_t> places;
    SkipSpace();
    if (Take('}')) return JsonValue::Object({});
    do {
      SkipSpace();
      if (!Take('"')) return Error("a member's name in double quotes was expected");
      ASSIGN_OR_RETURN(std::string key, StringBody());
      SkipSpace();
      if (!Take(':')) return Error("a colon was expected");
      ASSIGN_OR_RETURN(JsonValue value, Value(depth + 1));
      if (keep_) {
        const auto [place, is_new] = places.try_emplace(key, members.size());
        if (is_new) members.emplace_back(std::move(key), JsonValue());
        members[place->second].second = std::move(value);
      }
      SkipSpace();
    } while (Take(','));
    if (!Take('}')) return Error("a comma or a closing brace was expected");
    return JsonValue::Object(std::move(members));
  }

  absl::StatusOr<JsonValue> ArrayBody(int depth) {
    std::vector<JsonValue> items;
    SkipSpace();
    if (Take(']')) return JsonValue::Array({});
    do {
      ASSIGN_OR_RETURN(JsonValue item, Value(depth + 1));
      if (keep_) items.push_back(std::move(item));
      SkipSpace();
    } while (Take(','));
    if (!Take(']')) return Error("a comma or a closing bracket was expected");
    return JsonValue::Array(std::move(items));
  }

  absl::StatusOr<std::string> StringBody() {
    std::string out;
    while (at_ < text_.size()) {
      const char c = text_[at_++];
      if (c == '"') return out;
      if (static_cast<uint8_t>(c) < 0x20) return Error("a control character in a string");
      if (c != '\\') {
        out.push_back(c);
        continue;
      }
      RETURN_IF_ERROR(Escape(&out));
    }
    return Error("a string has no closing quote");
  }

  absl::Status Escape(std::string* out) {
    constexpr std::string_view kLetters = "\"\\/bfnrt";
    constexpr std::string_view kMeanings = "\"\\/\b\f\n\r\t";
    if (Take('u')) return UnicodeEscape(out);
    const size_t letter = at_ < text_.size() ? kLetters.find(text_[at_]) : kLetters.npos;
    if (letter == kLetters.npos) return Error("an unknown escape in a string");
    ++at_;
    out->push_back(kMeanings[letter]);
    return absl::OkStatus();
  }

  absl::Status UnicodeEscape(std::string* out) {
    std::optional<uint32_t> unit = HexUnit();
    if (!unit.has_value()) return Error("\\u needs four hexadecimal digits");
    uint32_t code_point = *unit;
    if (code_point >= 0xD800 && code_point < 0xE000) {
      const std::optional<uint32_t> low = TakeWord("\\u") ? HexUnit() : std::nullopt;
      if (code_point >= 0xDC00 || !low.has_value() || *low < 0xDC00 || *low >= 0xE000) {
        return Error(
            "half of a surrogate pair, which is no character: \\uD800 to \\uDFFF come in pairs "
            "only");
      }
      code_point = 0x10000 + ((code_point - 0xD800) << 10) + (*low - 0xDC00);
    }
    AppendUtf8(code_point, out);
    return absl::OkStatus();
  }

  std::optional<uint32_t> HexUnit() {
    const std::string_view digits = text_.substr(at_, 4);
    uint32_t unit = 0;
    const auto [end, error] =
        std::from_chars(digits.data(), digits.data() + digits.size(), unit, 16);
    if (error != std::errc() || digits.size() != 4 || end != digits.data() + 4) return std::nullopt;
    at_ += 4;
    return unit;
  }

  bool TakeDigits() {
    const size_t begin = at_;
    while (at_ < text_.size() && IsDigit(text_[at_])) ++at_;
    return at_ > begin;
  }

  absl::StatusOr<JsonValue> NumberBody() {
    const size_t begin = at_;
    Take('-');
    const bool leading_zero = Take('0');
    if (!leading_zero && !TakeDigits()) {
      at_ = begin;
      return Error(
          "a value was expected: an object, a list, a string in double quotes, a number, true, "
          "false "
          "or null");
    }
    if (Take('.') && !TakeDigits()) return Error("a digit must follow the decimal point");
    if (Take('e') || Take('E')) {
      if (!Take('+')) Take('-');
      if (!TakeDigits()) return Error("the exponent has no digits");
    }
    const std::string_view spelling = text_.substr(begin, at_ - begin);
    JsonValue number = JsonValue::Number(std::string(spelling));
    double value = 0;
    if (number.type() == JsonValue::Type::kNumber &&
        (!absl::SimpleAtod({spelling.data(), spelling.size()}, &value) || std::isinf(value))) {
      return Error("a number too large for a double");
    }
    return number;
  }

  std::string_view text_;
  bool keep_;
  size_t at_ = 0;
};

// The digits and the decimal exponent of the shortest text that reads back as `value` (finite).
struct Decimal {
  std::string digits;
  int exponent;  // of the first digit
};

Decimal Shortest(double value) {
  std::array<char, 64> buffer;
  const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), std::abs(value),
                                 std::chars_format::scientific)
                       .ptr;
  const std::string_view text(buffer.data(), static_cast<size_t>(end - buffer.data()));
  const size_t e = text.find('e');
  Decimal decimal{std::string(text.substr(0, 1)),
                  std::atoi(std::string(text.substr(e + 1)).c_str())};
  if (e > 2) decimal.digits += text.substr(2, e - 2);
  return decimal;
}

// repr(float) of Python.
std::string PythonFloat(double value) {
  const Decimal decimal = Shortest(value);
  const std::string sign = std::signbit(value) ? "-" : "";
  const auto [digits, exponent] = decimal;
  if (exponent < -4 || exponent >= 16) {
    const std::string fraction = digits.size() > 1 ? "." + digits.substr(1) : "";
    return fmt::format("{}{}{}e{}{:02}", sign, digits[0], fraction, exponent < 0 ? '-' : '+',
                       std::abs(exponent));
  }
  if (exponent < 0) {
    return sign + "0." + std::string(static_cast<size_t>(-exponent - 1), '0') + digits;
  }
  const size_t whole = static_cast<size_t>(exponent) + 1;
  if (digits.size() <= whole) {
    return sign + digits + std::string(whole - digits.size(), '0') + ".0";
  }
  return sign + digits.substr(0, whole) + "." + digits.substr(whole);
}

std::string PythonNumber(const JsonValue& number) {
  const std::string& spelling = number.number_spelling();
  if (number.type() == JsonValue::Type::kInteger) return spelling == "-0" ? "0" : spelling;
  double value = 0;
  (void)absl::SimpleAtod(spelling, &value);
  return PythonFloat(value);
}

void Write(const JsonValue& value, NumberStyle style, std::string* out) {
  switch (value.type()) {
    case JsonValue::Type::kNull:
      out->append("null");
      return;
    case JsonValue::Type::kBoolean:
      out->append(value.boolean() ? "true" : "false");
      return;
    case JsonValue::Type::kInteger:
    case JsonValue::Type::kNumber:
      out->append(style == NumberStyle::kPython ? PythonNumber(value) : value.number_spelling());
      return;
    case JsonValue::Type::kString:
      out->push_back('"');
      AppendJsonEscaped(value.string(), out);
      out->push_back('"');
      return;
    case JsonValue::Type::kArray: {
      std::string_view separator = "[";
      for (const JsonValue& item : value.items()) {
        out->append(std::exchange(separator, ", "));
        Write(item, style, out);
      }
      out->append(value.items().empty() ? "[]" : "]");
      return;
    }
    case JsonValue::Type::kObject: {
      std::string_view separator = "{\"";
      for (const auto& [key, member] : value.members()) {
        out->append(std::exchange(separator, ", \""));
        AppendJsonEscaped(key, out);
        out->append("\": ");
        Write(member, style, out);
      }
      out->append(value.members().empty() ? "{}" : "}");
      return;
    }
  }
}

}  // namespace

JsonValue JsonValue::Boolean(bool value) {
  JsonValue json;
  json.type_ = Type::kBoolean;
  json.text_ = value ? "true" : "false";
  return json;
}

JsonValue JsonValue::Number(std::string spelling) {
  JsonValue json;
  json.type_ = spelling.find_first_of(".eE") == spelling.npos ? Type::kInteger : Type::kNumber;
  json.text_ = std::move(spelling);
  return json;
}

JsonValue JsonValue::String(std::string text) {
  JsonValue json;
  json.type_ = Type::kString;
  json.text_ = std::move(text);
  return json;
}

JsonValue JsonValue::Array(std::vector<JsonValue> items) {
  JsonValue json;
  json.type_ = Type::kArray;
  json.items_ = std::move(items);
  return json;
}

JsonValue JsonValue::Object(std::vector<Member> members) {
  JsonValue json;
  json.type_ = Type::kObject;
  json.members_ = std::move(members);
  return json;
}

const JsonValue* JsonValue::Find(std::string_view key) const {
  for (const auto& [name, value] : members_) {
    if (name == key) return &value;
  }
  return nullptr;
}

absl::StatusOr<JsonValue> ParseJson(std::string_view text) {
  if (!IsValidUtf8(text)) return absl::InvalidArgumentError("not valid JSON: not UTF-8");
  return Parser(text, true).Document();
}

absl::Status CheckJson(std::string_view text) {
  if (!IsValidUtf8(text)) return absl::InvalidArgumentError("not valid JSON: not UTF-8");
  return Parser(text, false).Document().status();
}

std::string WriteJson(const JsonValue& value, NumberStyle style) {
  std::string out;
  Write(value, style, &out);
  return out;
}

void AppendJsonEscaped(std::string_view text, std::string* out) {
  constexpr std::string_view kMeanings = "\"\\\b\f\n\r\t";
  constexpr std::string_view kLetters = "\"\\bfnrt";
  size_t copied = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (static_cast<uint8_t>(c) >= 0x20 && c != '"' && c != '\\') continue;
    out->append(text.substr(copied, i - copied));
    copied = i + 1;
    const size_t letter = kMeanings.find(c);
    if (letter != kMeanings.npos) {
      out->push_back('\\');
      out->push_back(kLetters[letter]);
    } else {
      fmt::format_to(std::back_inserter(*out), "\\u{:04x}", static_cast<uint8_t>(c));
    }
  }
  out->append(text.substr(copied));
}

}  // namespace fulgur::text

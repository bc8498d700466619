// Writes JSON text by appending: no tree, no allocation beyond the output, commas by itself.
#pragma once

#include <concepts>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "text/json.h"

namespace fulgur::server {

// Shortest text that reads back as the same number, with ".0" for whole ones, as Python prints it.
// JSON has no infinities: the caller must not pass one.
std::string FormatNumber(double value);
std::string FormatNumber(float value);

class JsonWriter {
 public:
  // Goes on writing behind `prefix`, a text that ends inside an object after a member.
  explicit JsonWriter(std::string prefix = {})
      : out_(std::move(prefix)), needs_comma_(!out_.empty()) {}

  JsonWriter& BeginObject() { return Open('{'); }
  JsonWriter& EndObject() { return Close('}'); }
  JsonWriter& BeginArray() { return Open('['); }
  JsonWriter& EndArray() { return Close(']'); }

  JsonWriter& Key(std::string_view key) {
    String(key);
    out_ += ':';
    needs_comma_ = false;
    return *this;
  }

  JsonWriter& String(std::string_view text) {
    Comma();
    out_ += '"';
    text::AppendJsonEscaped(text, &out_);
    out_ += '"';
    return *this;
  }
  JsonWriter& Integer(int64_t value) { return Raw(std::to_string(value)); }
  JsonWriter& Number(double value) { return Raw(FormatNumber(value)); }
  JsonWriter& Number(float value) { return Raw(FormatNumber(value)); }
  JsonWriter& Bool(bool value) { return Raw(value ? "true" : "false"); }
  JsonWriter& Null() { return Raw("null"); }

  // `json` is a complete value.
  JsonWriter& Raw(std::string_view json) {
    Comma();
    out_ += json;
    return *this;
  }

  // Members in one call.
  JsonWriter& Field(std::string_view key, std::string_view text) { return Key(key).String(text); }
  JsonWriter& Field(std::string_view key, const char* text) { return Key(key).String(text); }
  JsonWriter& Field(std::string_view key, const std::string& text) { return Key(key).String(text); }
  JsonWriter& Field(std::string_view key, std::same_as<bool> auto value) {
    return Key(key).Bool(value);
  }
  JsonWriter& Field(std::string_view key,
                    std::integral auto value) requires(!std::same_as<decltype(value), bool>) {
    return Key(key).Integer(static_cast<int64_t>(value));
  }
  JsonWriter& NullField(std::string_view key) { return Key(key).Null(); }
  JsonWriter& OptionalField(std::string_view key, const std::optional<std::string>& text) {
    return text ? Field(key, *text) : NullField(key);
  }

  // A member that is there in one case and null in the other; `write` writes its value.
  template <typename Write>
  JsonWriter& FieldOrNull(std::string_view key, bool present, Write write) {
    Key(key);
    if (!present) return Null();
    write();
    return *this;
  }

  const std::string& text() const { return out_; }
  std::string Take() { return std::move(out_); }

 private:
  void Comma() {
    if (needs_comma_) out_ += ',';
    needs_comma_ = true;
  }
  JsonWriter& Open(char bracket) {
    Comma();
    out_ += bracket;
    needs_comma_ = false;
    return *this;
  }
  JsonWriter& Close(char bracket) {
    out_ += bracket;
    needs_comma_ = true;
    return *this;
  }

  std::string out_;
  bool needs_comma_;
};

}  // namespace fulgur::server

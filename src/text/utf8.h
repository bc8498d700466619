// UTF-8 in pieces: decoding single characters and repairing a byte stream.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace fulgur::text {

inline constexpr std::string_view kReplacementCharacter = "\xEF\xBF\xBD";  // U+FFFD

// One step of decoding at the start of a text.
struct Utf8Step {
  enum class Kind {
    kCharacter,  // `length` bytes are the character `code_point`
    kInvalid,    // `length` bytes are a maximal invalid part (Unicode, section 3.9)
    kPartial,    // all `length` bytes there are may be the beginning of a character
  };
  Kind kind;
  uint32_t code_point;  // meaningful for kCharacter only
  size_t length;
};

// Decodes the beginning of `bytes`, which must not be empty. Surrogates, overlong forms and values
// above U+10FFFF are invalid.
Utf8Step DecodeUtf8(std::string_view bytes);

bool IsValidUtf8(std::string_view bytes);

// The number of bytes before the first that is no part of a character; all of them if there is
// none.
size_t ValidUtf8Prefix(std::string_view bytes);

// Appends the UTF-8 of a code point (not a surrogate, at most U+10FFFF).
void AppendUtf8(uint32_t code_point, std::string* out);

// Copies a byte stream that arrives in arbitrary pieces, holding back an unfinished character and
// replacing every maximal invalid part by U+FFFD as soon as it is certain.
class Utf8Assembler {
 public:
  // Appends to `out` all characters that are complete after `bytes`.
  void Push(std::string_view bytes, std::string* out);

  // Appends U+FFFD if an unfinished character was held back, and starts anew.
  void Finish(std::string* out);

 private:
  std::string partial_;  // at most three bytes
};

// The whole of `bytes` with every maximal invalid part replaced by U+FFFD.
std::string RepairUtf8(std::string_view bytes);

}  // namespace fulgur::text

// Unicode character classes as the pre-tokenizer's patterns use them (Unicode 16.0, the version of
// Hugging Face tokenizers 0.23).
#pragma once

#include <cstdint>

namespace fulgur::text {

// The first letter of a character's general category, as far as the patterns tell them apart.
enum class CharClass : uint8_t { kOther, kLetter, kMark, kNumber, kPunctuation, kSymbol };

// Any value is allowed; those that are no Unicode character are kOther.
CharClass ClassOf(uint32_t code_point);

// The 25 characters with the property White_Space.
bool IsWhiteSpace(uint32_t code_point);

}  // namespace fulgur::text

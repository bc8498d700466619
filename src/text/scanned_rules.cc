// The split patterns of the DeepSeek-V3/V4 tokenizer as hand-written scanners.
#include <array>
#include <cstdint>

#include "text/char_class.h"
#include "text/pre_tokenizer.h"

namespace fulgur::text {
namespace {

// The properties of a character that the patterns ask for, as bits.
enum : uint8_t {
  kLetterOrMark = 1,
  kPunctOrSymbol = 2,
  kNumber = 4,
  kSpace = 8,
  kNewline = 16,
  kPrefix = 32,  // may precede a word: [^\r\n\p{L}\p{P}\p{S}]
  kAsciiPunct = 64,
  kAsciiLetter = 128,
};

constexpr uint8_t MakeProperties(uint32_t c, CharClass char_class, bool space) {
  const bool letter = char_class == CharClass::kLetter;
  const bool punct = char_class == CharClass::kPunctuation || char_class == CharClass::kSymbol;
  const bool newline = c == '\r' || c == '\n';
  uint8_t bits = 0;
  if (letter || char_class == CharClass::kMark) bits |= kLetterOrMark;
  if (punct) bits |= kPunctOrSymbol;
  if (char_class == CharClass::kNumber) bits |= kNumber;
  if (space) bits |= kSpace;
  if (newline) bits |= kNewline;
  if (!letter && !punct && !newline) bits |= kPrefix;
  if (c < 0x80 && punct) bits |= kAsciiPunct;
  if (c < 0x80 && letter) bits |= kAsciiLetter;
  return bits;
}

// ASCII is most of most texts, so its properties are a small constant table.
constexpr std::array<uint8_t, 128> kAsciiProperties = [] {
  std::array<uint8_t, 128> table{};
  for (uint32_t c = 0; c < 128; ++c) {
    const bool letter = (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
    const bool digit = c >= '0' && c <= '9';
    const bool graphic = c > ' ' && c < 0x7F;
    const CharClass char_class = letter    ? CharClass::kLetter
                                 : digit   ? CharClass::kNumber
                                 : graphic ? CharClass::kPunctuation
                                           : CharClass::kOther;
    table[c] = MakeProperties(c, char_class, c == ' ' || (c >= '\t' && c <= '\r'));
  }
  return table;
}();

struct Character {
  uint32_t code_point;
  uint8_t bits;
  uint8_t length;
};

// Decodes the character at `at`, which is inside `text`; `text` is valid UTF-8.
inline Character Read(std::string_view text, size_t at) {
  const auto byte = [&](size_t i) {
    return static_cast<uint32_t>(static_cast<uint8_t>(text[at + i]));
  };
  const uint32_t lead = byte(0);
  if (lead < 0x80) return {lead, kAsciiProperties[lead], 1};
  const auto make = [](uint32_t c, uint8_t length) {
    return Character{c, MakeProperties(c, ClassOf(c), IsWhiteSpace(c)), length};
  };
  if (lead < 0xE0) return make((lead & 0x1F) << 6 | (byte(1) & 0x3F), 2);
  if (lead < 0xF0) {
    return make((lead & 0x0F) << 12 | (byte(1) & 0x3F) << 6 | (byte(2) & 0x3F), 3);
  }
  return make(
      (lead & 0x07) << 18 | (byte(1) & 0x3F) << 12 | (byte(2) & 0x3F) << 6 | (byte(3) & 0x3F), 4);
}

// The end of the run of characters that have one of `bits`, from `at` on.
size_t SkipRun(std::string_view text, size_t at, uint8_t bits) {
  while (at < text.size()) {
    const Character c = Read(text, at);
    if ((c.bits & bits) == 0) break;
    at += c.length;
  }
  return at;
}

// \p{N}{1,max_digits}
class NumberRule : public SplitRule {
 public:
  explicit NumberRule(int max_digits) : max_digits_(max_digits) {}

  std::optional<ByteRange> FindNext(std::string_view text, size_t from) const override {
    while (from < text.size()) {
      const Character c = Read(text, from);
      if ((c.bits & kNumber) != 0) return ByteRange{from, End(text, from)};
      from += c.length;
    }
    return std::nullopt;
  }

 private:
  size_t End(std::string_view text, size_t at) const {
    for (int digits = 0; digits < max_digits_ && at < text.size(); ++digits) {
      const Character c = Read(text, at);
      if ((c.bits & kNumber) == 0) break;
      at += c.length;
    }
    return at;
  }

  int max_digits_;
};

// [一-龥぀-ゟ゠-ヿ]+
class CjkRule : public SplitRule {
 public:
  std::optional<ByteRange> FindNext(std::string_view text, size_t from) const override {
    while (from < text.size() && !IsCjk(text, from)) from += Read(text, from).length;
    if (from == text.size()) return std::nullopt;
    size_t end = from;
    while (end < text.size() && IsCjk(text, end)) end += 3;
    return ByteRange{from, end};
  }

 private:
  static bool IsCjk(std::string_view text, size_t at) {
    const auto lead = static_cast<uint8_t>(text[at]);
    if (lead < 0xE3 || lead > 0xE9) return false;
    const uint32_t c = Read(text, at).code_point;
    return (c >= 0x4E00 && c <= 0x9FA5) || (c >= 0x3040 && c <= 0x30FF);
  }
};

// [!-/:-@[-`{-~][A-Za-z]+ | [^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+ | ?[\p{P}\p{S}]+[\r\n]* |
// \s*[\r\n]+ | \s+(?!\S) | \s+
class WordRule : public SplitRule {
 public:
  std::optional<ByteRange> FindNext(std::string_view text, size_t from) const override {
    while (from < text.size()) {
      const Character c = Read(text, from);
      const size_t end = MatchAt(text, from, c);
      if (end > from) return ByteRange{from, end};
      from += c.length;
    }
    return std::nullopt;
  }

 private:
  // The end of the match that begins with `c` at `at`, or `at` if there is none. The alternatives
  // are tried in the pattern's order.
  static size_t MatchAt(std::string_view text, size_t at, Character c) {
    const size_t behind = at + c.length;
    const uint8_t next_bits = behind < text.size() ? Read(text, behind).bits : uint8_t{0};
    if ((c.bits & kAsciiPunct) != 0 && (next_bits & kAsciiLetter) != 0) {
      return SkipRun(text, behind, kAsciiLetter);
    }
    if ((c.bits & kPrefix) != 0 && (next_bits & kLetterOrMark) != 0) {
      return SkipRun(text, behind, kLetterOrMark);
    }
    if ((c.bits & kLetterOrMark) != 0) return SkipRun(text, behind, kLetterOrMark);
    if ((c.bits & kPunctOrSymbol) != 0 ||
        (c.code_point == ' ' && (next_bits & kPunctOrSymbol) != 0)) {
      return SkipRun(text, SkipRun(text, behind, kPunctOrSymbol), kNewline);
    }
    return (c.bits & kSpace) != 0 ? EndOfSpace(text, at) : at;
  }

  // A run of white space ends behind its last line break; without one, before its last character,
  // which belongs to what follows, if anything does.
  static size_t EndOfSpace(std::string_view text, size_t begin) {
    size_t end = begin;
    size_t behind_newline = begin;
    size_t last = begin;
    while (end < text.size()) {
      const Character c = Read(text, end);
      if ((c.bits & kSpace) == 0) break;
      last = end;
      end += c.length;
      if ((c.bits & kNewline) != 0) behind_newline = end;
    }
    if (behind_newline > begin) return behind_newline;
    return end == text.size() || last == begin ? end : last;
  }
};

}  // namespace

std::unique_ptr<SplitRule> MakeScannedRule(std::string_view pattern) {
  if (pattern == R"(\p{N}{1,3})") return std::make_unique<NumberRule>(3);
  if (pattern == R"(\p{N})") return std::make_unique<NumberRule>(1);
  if (pattern == "[一-龥぀-ゟ゠-ヿ]+") return std::make_unique<CjkRule>();
  if (pattern ==
      "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+"
      "|[^\r\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+"
      "| ?[\\p{P}\\p{S}]+[\r\n]*"
      "|\\s*[\r\n]+|\\s+(?!\\S)|\\s+") {
    return std::make_unique<WordRule>();
  }
  return nullptr;
}

}  // namespace fulgur::text

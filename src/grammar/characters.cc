#include "grammar/characters.h"

#include <algorithm>
#include <array>
#include <span>
#include <string>

#include "text/utf8.h"

namespace fulgur::grammar {
namespace {

constexpr uint32_t kFirstSurrogate = 0xD800;
constexpr uint32_t kLastSurrogate = 0xDFFF;
constexpr uint32_t kContinuationBits = 6;
// The largest character that is spelt with 1, 2, 3 and 4 bytes.
constexpr std::array<uint32_t, 4> kLargestOfLength = {0x7F, 0x7FF, 0xFFFF, CharacterSet::kMax};

ByteSet ByteRange(uint8_t first, uint8_t last) {
  ByteSet set;
  for (uint32_t byte = first; byte <= last; ++byte) set.set(byte);
  return set;
}

// Spells the characters from `first` to `last`, which have equally many bytes. Split so that in
// each part the bytes are independent of each other, as in RE2's compiler.
class RangeSpeller {
 public:
  explicit RangeSpeller(GrammarBuilder& builder) : builder_(builder) {}

  void Spell(uint32_t first, uint32_t last) {
    for (uint32_t bits = kContinuationBits; bits <= 3 * kContinuationBits;
         bits += kContinuationBits) {
      const uint32_t mask = (1U << bits) - 1;
      if ((first & ~mask) == (last & ~mask)) break;
      if ((first & mask) != 0) return SpellParts(first, first | mask, last);
      if ((last & mask) != mask) return SpellParts(first, (last & ~mask) - 1, last);
    }
    SpellBytes(first, last);
  }

  const std::vector<Symbol>& spelt() const { return spelt_; }

 private:
  void SpellParts(uint32_t first, uint32_t middle, uint32_t last) {
    Spell(first, middle);
    Spell(middle + 1, last);
  }

  void SpellBytes(uint32_t first, uint32_t last) {
    std::string low, high;
    text::AppendUtf8(first, &low);
    text::AppendUtf8(last, &high);
    std::vector<Symbol> bytes;
    for (size_t i = 0; i < low.size(); ++i) {
      bytes.push_back(
          builder_.Bytes(ByteRange(static_cast<uint8_t>(low[i]), static_cast<uint8_t>(high[i]))));
    }
    spelt_.push_back(builder_.Sequence(bytes));
  }

  GrammarBuilder& builder_;
  std::vector<Symbol> spelt_;
};

}  // namespace

void CharacterSet::Add(const CharacterSet& other) {
  ranges_.insert(ranges_.end(), other.ranges_.begin(), other.ranges_.end());
}

std::vector<CharacterSet::Range> CharacterSet::Ranges() const {
  std::vector<Range> sorted = ranges_;
  std::sort(sorted.begin(), sorted.end());
  std::vector<Range> merged;
  for (const Range& range : sorted) {
    if (!merged.empty() && range.first <= merged.back().second + 1) {
      merged.back().second = std::max(merged.back().second, range.second);
    } else {
      merged.push_back(range);
    }
  }
  return merged;
}

CharacterSet CharacterSet::Complement() const {
  CharacterSet rest;
  uint32_t next = 0;
  for (const auto& [first, last] : Ranges()) {
    if (first > next) rest.Add(next, first - 1);
    next = last + 1;
  }
  if (next <= kMax) rest.Add(next, kMax);
  return rest;
}

Symbol CharacterSet::Spell(GrammarBuilder& builder) const {
  ByteSet ascii;
  RangeSpeller speller(builder);
  const auto spell = [&](uint32_t first, uint32_t last) {
    uint32_t from = kLargestOfLength[0] + 1;
    for (uint32_t c = first; c <= std::min(last, kLargestOfLength[0]); ++c) ascii.set(c);
    for (const uint32_t largest : std::span(kLargestOfLength).subspan(1)) {
      const uint32_t low = std::max(first, from), high = std::min(last, largest);
      if (low <= high) speller.Spell(low, high);
      from = largest + 1;
    }
  };
  for (const auto& [first, last] : Ranges()) {
    if (first < kFirstSurrogate) spell(first, std::min(last, kFirstSurrogate - 1));
    if (last > kLastSurrogate) spell(std::max(first, kLastSurrogate + 1), last);
  }
  std::vector<Symbol> options = speller.spelt();
  if (ascii.any() || options.empty()) options.push_back(builder.Bytes(ascii));
  return builder.Choice(options);
}

}  // namespace fulgur::grammar

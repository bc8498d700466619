#include "text/char_class.h"

#include <array>
#include <memory>
#include <vector>

namespace fulgur::text {
namespace {

struct ClassRange {
  uint32_t first;
  uint32_t last;
  CharClass char_class;
};

constexpr CharClass L = CharClass::kLetter;
constexpr CharClass M = CharClass::kMark;
constexpr CharClass N = CharClass::kNumber;
constexpr CharClass P = CharClass::kPunctuation;
constexpr CharClass S = CharClass::kSymbol;

constexpr ClassRange kRanges[] = {
#include "text/char_class_ranges.inc"
};

// The ranges spread out into pages of 256 characters, equal pages shared, so that a lookup is two
// loads and the whole table stays in the second-level cache.
class Pages {
 public:
  Pages() {
    constexpr uint32_t kPageSize = 256;
    Page page{};
    size_t range = 0;
    for (uint32_t first = 0; first <= kLastCodePoint; first += kPageSize) {
      for (uint32_t i = 0; i < kPageSize; ++i) {
        while (range < std::size(kRanges) && kRanges[range].last < first + i) ++range;
        const bool inside = range < std::size(kRanges) && kRanges[range].first <= first + i;
        page[i] = inside ? kRanges[range].char_class : CharClass::kOther;
      }
      index_[first / kPageSize] = Intern(page);
    }
  }

  CharClass Lookup(uint32_t code_point) const {
    return pages_[index_[code_point >> 8]][code_point & 255];
  }

  static constexpr uint32_t kLastCodePoint = 0x10FFFF;

 private:
  using Page = std::array<CharClass, 256>;

  uint8_t Intern(const Page& page) {
    for (size_t i = 0; i < pages_.size(); ++i) {
      if (pages_[i] == page) return static_cast<uint8_t>(i);
    }
    pages_.push_back(page);
    return static_cast<uint8_t>(pages_.size() - 1);
  }

  std::array<uint8_t, (kLastCodePoint + 1) / 256> index_{};
  std::vector<Page> pages_;
};

}  // namespace

CharClass ClassOf(uint32_t code_point) {
  static const Pages pages;
  return code_point <= Pages::kLastCodePoint ? pages.Lookup(code_point) : CharClass::kOther;
}

bool IsWhiteSpace(uint32_t c) {
  if (c < 0x80) return c == ' ' || (c >= '\t' && c <= '\r');
  return c == 0x85 || c == 0xA0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200A) || c == 0x2028 ||
         c == 0x2029 || c == 0x202F || c == 0x205F || c == 0x3000;
}

}  // namespace fulgur::text

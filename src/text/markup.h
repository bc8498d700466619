// The output format's markers inside a text: each is one byte that no UTF-8 text contains, so that
// the parser sees real markers and never mistakes a look-alike for one.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "text/output_parser.h"

namespace fulgur::text {

constexpr char MarkOf(Marker marker) { return static_cast<char>(0xF8 + static_cast<int>(marker)); }
constexpr bool IsMark(char byte) {
  return static_cast<uint8_t>(byte) >= 0xF8 && static_cast<uint8_t>(byte) < 0xF8 + kNumMarkers;
}
constexpr Marker MarkerOfMark(char mark) {
  return static_cast<Marker>(static_cast<uint8_t>(mark) - 0xF8);
}

// Text with markers spelt out again.
std::string SpellMarks(std::string_view marked);

// Finds spelt-out markers in a text that arrives in pieces.
class MarkerScanner {
 public:
  // Appends the piece to `marked` with markers as marks, holding back what may be part of one.
  void Push(std::string_view piece, std::string* marked);
  void Finish(std::string* marked);

 private:
  std::string held_;  // a proper prefix of some marker
};

}  // namespace fulgur::text

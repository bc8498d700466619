#include "text/markup.h"

#include <utility>

namespace fulgur::text {
namespace {

constexpr std::array<std::string_view, kNumMarkers> kTexts = {
    "<｜begin▁of▁sentence｜>",
    "<｜end▁of▁sentence｜>",
    "<｜User｜>",
    "<｜Assistant｜>",
    "<think>",
    "</think>",
    "｜DSML｜",
};

// All markers begin with '<' or with the first byte of U+FF5C.
bool MayBegin(char byte) { return byte == '<' || byte == '\xEF'; }

}  // namespace

std::string_view MarkerText(Marker marker) { return kTexts[static_cast<size_t>(marker)]; }

std::string SpellMarks(std::string_view marked) {
  std::string text;
  text.reserve(marked.size());
  for (char byte : marked) {
    if (IsMark(byte)) {
      text.append(MarkerText(MarkerOfMark(byte)));
    } else {
      text.push_back(byte);
    }
  }
  return text;
}

void MarkerScanner::Push(std::string_view piece, std::string* marked) {
  held_.append(piece);
  const std::string text = std::exchange(held_, "");
  size_t at = 0;
  while (at < text.size()) {
    size_t candidate = at;
    while (candidate < text.size() && !MayBegin(text[candidate])) ++candidate;
    marked->append(text, at, candidate - at);
    at = candidate;
    if (at == text.size()) return;
    const std::string_view rest = std::string_view(text).substr(at);
    size_t length = 1;
    char out = text[at];
    for (size_t i = 0; i < kTexts.size(); ++i) {
      if (rest.size() < kTexts[i].size() && kTexts[i].starts_with(rest)) {
        held_ = rest;
        return;
      }
      if (rest.starts_with(kTexts[i])) {
        out = MarkOf(static_cast<Marker>(i));
        length = kTexts[i].size();
      }
    }
    marked->push_back(out);
    at += length;
  }
}

void MarkerScanner::Finish(std::string* marked) {
  marked->append(held_);
  held_.clear();
}

}  // namespace fulgur::text

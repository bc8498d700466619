#include "grammar/pattern_text.h"

#include <charconv>

#include "absl/strings/str_format.h"
#include "grammar/grammar.h"
#include "text/utf8.h"

namespace fulgur::grammar {

absl::Status PatternText::Check() const {
  if (text_.size() > kMaxPatternBytes) {
    return absl::InvalidArgumentError(absl::StrFormat("%s has %d bytes, but may have at most %d",
                                                      what_, text_.size(), kMaxPatternBytes));
  }
  if (text::IsValidUtf8(text_)) return absl::OkStatus();
  return absl::InvalidArgumentError(what_ + " is not valid UTF-8");
}

bool PatternText::Take(std::string_view expected) {
  if (!At(expected)) return false;
  at_ += expected.size();
  return true;
}

uint32_t PatternText::TakeCharacter() {
  const text::Utf8Step step = text::DecodeUtf8(text_.substr(at_));
  at_ += step.length;
  return step.code_point;
}

absl::StatusOr<uint32_t> PatternText::TakeHex(int digits) {
  const std::string_view part = rest().substr(0, static_cast<size_t>(digits));
  uint32_t value = 0;
  const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), value, 16);
  if (error != std::errc() || end != part.data() + part.size() ||
      part.size() != static_cast<size_t>(digits)) {
    return Error(absl::StrFormat("%d hexadecimal digits are expected", digits));
  }
  if (value > 0x10FFFF || (value >= 0xD800 && value < 0xE000)) {
    return Error("there is no such character");
  }
  at_ += part.size();
  return value;
}

std::optional<int64_t> PatternText::TakeNumber() {
  int64_t value = 0;
  const std::string_view left = rest();
  const auto [end, error] = std::from_chars(left.data(), left.data() + left.size(), value);
  if (error != std::errc() || value < 0) return std::nullopt;
  at_ += static_cast<size_t>(end - left.data());
  return value;
}

absl::StatusOr<RepeatCount> PatternText::TakeBounds() {
  const auto least = TakeNumber();
  RepeatCount count = {least.value_or(0), least.value_or(0)};
  const bool open = Take(",");
  if (open) count.most = TakeNumber().value_or(GrammarBuilder::kUnbounded);
  if ((!least && !open) || !Take("}")) {
    return Error("a repetition is expected, such as {2}, {2,} or {2,5}");
  }
  const bool unbounded = count.most == GrammarBuilder::kUnbounded;
  if (!unbounded && count.most < count.least) {
    return Error("a repetition has its larger number first");
  }
  if (count.least > GrammarBuilder::kMaxRepeats || count.most > GrammarBuilder::kMaxRepeats) {
    return Error(
        absl::StrFormat("a repetition may ask for at most %d", GrammarBuilder::kMaxRepeats));
  }
  return count;
}

absl::Status PatternText::Error(std::string_view problem) const {
  return absl::InvalidArgumentError(
      absl::StrFormat("%s is wrong at byte %d: %s", what_, at_, problem));
}

}  // namespace fulgur::grammar

// Reads the text of a pattern character by character; errors say where in it they are.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace fulgur::grammar {

// Patterns come from users: longer and deeper ones than these are refused.
inline constexpr size_t kMaxPatternBytes = 1 << 16;
inline constexpr int kMaxPatternDepth = 200;

// How often a part of a pattern is asked for; `most` may be GrammarBuilder::kUnbounded.
struct RepeatCount {
  int64_t least = 1;
  int64_t most = 1;
};

class PatternText {
 public:
  // `what` is how errors call the whole: "the regular expression".
  PatternText(std::string_view what, std::string_view text) : what_(what), text_(text) {}

  // kInvalidArgument: too long, or not UTF-8.
  absl::Status Check() const;

  bool AtEnd() const { return at_ == text_.size(); }
  bool At(std::string_view expected) const { return text_.substr(at_).starts_with(expected); }
  // Goes past `expected` if it comes next.
  bool Take(std::string_view expected);
  // The next character, which there must be.
  uint32_t TakeCharacter();
  // Up to `digits` hexadecimal digits, at least one.
  absl::StatusOr<uint32_t> TakeHex(int digits);
  // `least,most}` behind an opening brace.
  absl::StatusOr<RepeatCount> TakeBounds();
  void Skip(size_t bytes) { at_ += bytes; }
  std::string_view rest() const { return text_.substr(at_); }

  // kInvalidArgument: what is wrong here.
  absl::Status Error(std::string_view problem) const;

 private:
  std::optional<int64_t> TakeNumber();

  const std::string what_;
  const std::string_view text_;
  size_t at_ = 0;
};

}  // namespace fulgur::grammar

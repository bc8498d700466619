// Cuts text into the pieces that are merged separately: a sequence of split rules, each applied to
// the pieces that the rules before it left, every piece as if it were a text of its own.
//
// Rules are regular expressions whose matches become pieces, as do the gaps between them (Hugging
// Face: Split, "Isolated"). Those of the DeepSeek-V3/V4 tokenizer are scanned by hand, an order of
// magnitude faster than by a regular expression engine and with the Unicode version of the
// reference; any other runs on PCRE2, whose Unicode version is the installed library's. Immutable
// after construction, usable from any thread.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "text/tokenizer.h"

namespace fulgur::text {

// Finds the matches of one pattern.
class SplitRule {
 public:
  virtual ~SplitRule() = default;

  // The first non-empty match in `text` that begins at or after `from`. `text` is valid UTF-8 and
  // `from` a character boundary.
  virtual std::optional<ByteRange> FindNext(std::string_view text, size_t from) const = 0;
};

// A rule of the DeepSeek family by its pattern, or null if the pattern is another one.
std::unique_ptr<SplitRule> MakeScannedRule(std::string_view pattern);

// A rule that runs on PCRE2; an error if the pattern is not a regular expression.
absl::StatusOr<std::unique_ptr<SplitRule>> MakeRegexRule(const std::string& pattern);

class PreTokenizer {
 public:
  // Adds a rule behind those already there.
  absl::Status AddSplit(const std::string& pattern);

  // Calls `piece` with each piece of `text` (valid UTF-8) in order; together they are the text.
  // Stops early when `piece` returns false.
  void Split(std::string_view text, absl::FunctionRef<bool(std::string_view)> piece) const;

 private:
  bool SplitFrom(size_t rule, std::string_view text,
                 absl::FunctionRef<bool(std::string_view)> piece) const;

  std::vector<std::unique_ptr<SplitRule>> rules_;
};

}  // namespace fulgur::text

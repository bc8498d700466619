#include "text/pre_tokenizer.h"

#include <utility>

#include "base/status_macros.h"

namespace fulgur::text {

absl::Status PreTokenizer::AddSplit(const std::string& pattern) {
  std::unique_ptr<SplitRule> rule = MakeScannedRule(pattern);
  if (rule == nullptr) {
    ASSIGN_OR_RETURN(rule, MakeRegexRule(pattern));
  }
  rules_.push_back(std::move(rule));
  return absl::OkStatus();
}

void PreTokenizer::Split(std::string_view text,
                         absl::FunctionRef<bool(std::string_view)> piece) const {
  SplitFrom(0, text, piece);
}

bool PreTokenizer::SplitFrom(size_t rule, std::string_view text,
                             absl::FunctionRef<bool(std::string_view)> piece) const {
  if (text.empty()) return true;
  if (rule == rules_.size()) return piece(text);
  size_t at = 0;
  while (at < text.size()) {
    const ByteRange match =
        rules_[rule]->FindNext(text, at).value_or(ByteRange{text.size(), text.size()});
    if (!SplitFrom(rule + 1, text.substr(at, match.begin - at), piece)) return false;
    if (!SplitFrom(rule + 1, text.substr(match.begin, match.end - match.begin), piece)) {
      return false;
    }
    at = match.end;
  }
  return true;
}

}  // namespace fulgur::text

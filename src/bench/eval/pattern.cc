#define PCRE2_CODE_UNIT_WIDTH 8
#include "bench/eval/pattern.h"

#include <pcre2.h>

#include "base/check.h"

namespace fulgur::bench {

struct Pattern::Compiled {
  pcre2_code* code = nullptr;
  pcre2_match_data* match = nullptr;
};

Pattern::Pattern(const std::string& expression) : compiled_(std::make_unique<Compiled>()) {
  int error = 0;
  PCRE2_SIZE offset = 0;
  // Answers may hold any bytes, so they are matched as bytes, not as UTF-8.
  compiled_->code = pcre2_compile(reinterpret_cast<PCRE2_SPTR>(expression.data()),
                                  expression.size(), PCRE2_MULTILINE, &error, &offset, nullptr);
  CHECK(compiled_->code != nullptr);
  compiled_->match = pcre2_match_data_create_from_pattern(compiled_->code, nullptr);
}

Pattern::~Pattern() {
  pcre2_match_data_free(compiled_->match);
  pcre2_code_free(compiled_->code);
}

std::optional<Pattern::Match> Pattern::First(std::string_view text, size_t from) const {
  const int groups = pcre2_match(compiled_->code, reinterpret_cast<PCRE2_SPTR>(text.data()),
                                 text.size(), from, 0, compiled_->match, nullptr);
  if (groups < 1) return std::nullopt;
  const PCRE2_SIZE* at = pcre2_get_ovector_pointer(compiled_->match);
  const size_t group = groups > 1 && at[2] != PCRE2_UNSET ? 1 : 0;
  return Match{text.substr(at[2 * group], at[2 * group + 1] - at[2 * group]), at[1]};
}

std::optional<Pattern::Match> Pattern::Last(std::string_view text) const {
  std::optional<Match> last;
  for (size_t from = 0; from <= text.size();) {
    const auto match = First(text, from);
    if (!match) break;
    last = match;
    from = match->end > from ? match->end : from + 1;
  }
  return last;
}

}  // namespace fulgur::bench

// Split rules on PCRE2 with just-in-time compilation.
#define PCRE2_CODE_UNIT_WIDTH 8
#include <fmt/format.h>
#include <pcre2.h>

#include "absl/status/statusor.h"
#include "text/pre_tokenizer.h"

namespace fulgur::text {
namespace {

struct Free {
  void operator()(pcre2_code* code) const { pcre2_code_free(code); }
  void operator()(pcre2_match_data* data) const { pcre2_match_data_free(data); }
  void operator()(pcre2_match_context* context) const { pcre2_match_context_free(context); }
  void operator()(pcre2_jit_stack* stack) const { pcre2_jit_stack_free(stack); }
};
template <typename T>
using Owned = std::unique_ptr<T, Free>;

// What a match needs besides the pattern; one per thread, since patterns are shared. The limits
// keep a hostile pattern from running for ever or filling the memory.
struct MatchScratch {
  MatchScratch()
      : data(pcre2_match_data_create(1, nullptr)),
        context(pcre2_match_context_create(nullptr)),
        stack(pcre2_jit_stack_create(64 * 1024, 16 * 1024 * 1024, nullptr)) {
    pcre2_jit_stack_assign(context.get(), nullptr, stack.get());
    pcre2_set_match_limit(context.get(), 10'000'000);
    pcre2_set_heap_limit(context.get(), 64 * 1024);  // KiB
  }

  Owned<pcre2_match_data> data;
  Owned<pcre2_match_context> context;
  Owned<pcre2_jit_stack> stack;
};

class RegexRule : public SplitRule {
 public:
  explicit RegexRule(Owned<pcre2_code> code) : code_(std::move(code)) {}

  std::optional<ByteRange> FindNext(std::string_view text, size_t from) const override {
    thread_local MatchScratch scratch;
    constexpr uint32_t kOptions = PCRE2_NO_UTF_CHECK | PCRE2_NOTEMPTY;
    const int result =
        pcre2_match(code_.get(), reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(), from,
                    kOptions, scratch.data.get(), scratch.context.get());
    // A pattern that exceeds the limits on this text splits it no further, which keeps encoding
    // total and deterministic.
    if (result < 0) return std::nullopt;
    const PCRE2_SIZE* ends = pcre2_get_ovector_pointer(scratch.data.get());
    // \K may place the start of a match before `from` or behind its end.
    if (ends[0] < from || ends[1] <= ends[0]) return std::nullopt;
    return ByteRange{ends[0], ends[1]};
  }

 private:
  Owned<pcre2_code> code_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<SplitRule>> MakeRegexRule(const std::string& pattern) {
  int error = 0;
  PCRE2_SIZE offset = 0;
  Owned<pcre2_code> code(pcre2_compile(reinterpret_cast<PCRE2_SPTR>(pattern.data()), pattern.size(),
                                       PCRE2_UTF | PCRE2_UCP | PCRE2_NEVER_BACKSLASH_C, &error,
                                       &offset, nullptr));
  if (code == nullptr) {
    char message[256] = "";
    pcre2_get_error_message(error, reinterpret_cast<PCRE2_UCHAR*>(message), sizeof(message));
    return absl::InvalidArgumentError(fmt::format(
        "the split pattern is not a regular expression: {} at offset {}", message, offset));
  }
  // Without the compiler (an unsupported processor) matching is interpreted: slower, same result.
  pcre2_jit_compile(code.get(), PCRE2_JIT_COMPLETE);
  return std::make_unique<RegexRule>(std::move(code));
}

}  // namespace fulgur::text

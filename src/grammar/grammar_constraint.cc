#include "grammar/grammar_constraint.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"

namespace fulgur::grammar {
namespace {

constexpr size_t kWordBits = sample::AllowedTokens::kWordBits;

}  // namespace

GrammarConstraint::GrammarConstraint(std::shared_ptr<const CompiledGrammar> grammar,
                                     std::optional<int32_t> starts_behind)
    : grammar_(std::move(grammar)),
      starts_behind_(starts_behind),
      matcher_(grammar_->grammar()),
      state_(matcher_.Start()),
      allowed_((static_cast<size_t>(grammar_->tokenizer().vocab_size()) + kWordBits - 1) /
               kWordBits) {}

void GrammarConstraint::Allow(int32_t token) {
  const auto id = static_cast<size_t>(token);
  allowed_[id / kWordBits] |= uint64_t{1} << (id % kWordBits);
}

absl::StatusOr<sample::AllowedTokens> GrammarConstraint::Allowed() {
  if (stale_) {
    std::fill(allowed_.begin(), allowed_.end(), 0);
    for (const StackId stack : state_) {
      if (stack == kFinished) continue;
      const auto mask = grammar_->MaskOf(matcher_.TopOf(stack, CompiledGrammar::kTopDepth));
      for (const int32_t token : mask->allowed) Allow(token);
      for (const int32_t token : mask->open) {
        if (Fits(stack, token)) Allow(token);
      }
    }
    stale_ = false;
  }
  if (matcher_.Overflowed()) {
    return absl::ResourceExhaustedError(
        "the requested format is too ambiguous: there are too many ways to read the answer so far");
  }
  if (state_.empty()) return absl::InternalError("the answer has left the requested format");
  return sample::AllowedTokens{.bits = allowed_, .end = state_.front() == kFinished};
}

bool GrammarConstraint::Fits(StackId stack, int32_t token) {
  trial_.assign(1, stack);
  Follow(token, trial_);
  return !trial_.empty();
}

void GrammarConstraint::Follow(int32_t token, MatchState& state) {
  const auto take = [&](uint8_t byte) {
    matcher_.Advance(state, byte, next_);
    std::swap(state, next_);
  };
  const text::Tokenizer& tokenizer = grammar_->tokenizer();
  if (tokenizer.IsAdded(token)) take(kAddedTokenMark);
  for (const char byte : tokenizer.TokenBytes(token)) take(static_cast<uint8_t>(byte));
}

void GrammarConstraint::Accept(int32_t token) {
  if (starts_behind_) {
    if (token == *starts_behind_) starts_behind_.reset();
    return;
  }
  // Behind the end only end-of-sequence tokens follow, if they are ignored.
  if (state_.size() == 1 && state_.front() == kFinished) return;
  stale_ = true;
  Follow(token, state_);
}

}  // namespace fulgur::grammar

#include "grammar/grammar_constraint.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"

namespace fulgur::grammar {
namespace {

constexpr size_t kWordBits = 64;

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
  from_.assign(1, stack);
  for (const char byte : grammar_->tokenizer().TokenBytes(token)) {
    matcher_.Advance(from_, static_cast<uint8_t>(byte), to_);
    std::swap(from_, to_);
    if (from_.empty()) return false;
  }
  return true;
}

void GrammarConstraint::Accept(int32_t token) {
  if (starts_behind_) {
    if (token == *starts_behind_) starts_behind_.reset();
    return;
  }
  stale_ = true;
  for (const char byte : grammar_->tokenizer().TokenBytes(token)) {
    matcher_.Advance(state_, static_cast<uint8_t>(byte), to_);
    std::swap(state_, to_);
  }
}

}  // namespace fulgur::grammar

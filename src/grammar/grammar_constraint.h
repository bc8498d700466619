// Keeps one answer inside a grammar.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "grammar/compiled_grammar.h"
#include "grammar/matcher.h"
#include "sample/token_constraint.h"

namespace fulgur::grammar {

class GrammarConstraint : public sample::TokenConstraint {
 public:
  // Active from the start, or behind the token `starts_behind` (the end of the reasoning).
  GrammarConstraint(std::shared_ptr<const CompiledGrammar> grammar,
                    std::optional<int32_t> starts_behind);

  bool active() const override { return !starts_behind_; }
  // kResourceExhausted: the grammar is too ambiguous to follow. kInternal: a token that was not
  // allowed was accepted.
  absl::StatusOr<sample::AllowedTokens> Allowed() override;
  void Accept(int32_t token) override;

 private:
  void Allow(int32_t token);
  bool Fits(StackId stack, int32_t token);
  // Moves `state` over a token; empty: it does not fit.
  void Follow(int32_t token, MatchState& state);

  const std::shared_ptr<const CompiledGrammar> grammar_;
  std::optional<int32_t> starts_behind_;
  Matcher matcher_;
  MatchState state_;
  MatchState trial_, next_;  // scratch
  bool stale_ = true;        // allowed_ is of an earlier state
  std::vector<uint64_t> allowed_;
};

}  // namespace fulgur::grammar

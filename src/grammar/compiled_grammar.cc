#include "grammar/compiled_grammar.h"

#include <algorithm>
#include <span>
#include <utility>

namespace fulgur::grammar {

CompiledGrammar::CompiledGrammar(Grammar grammar, text::Tokenizer tokenizer,
                                 std::shared_ptr<const TokenTrie> trie)
    : grammar_(std::move(grammar)), tokenizer_(std::move(tokenizer)), trie_(std::move(trie)) {}

std::shared_ptr<const LocalMask> CompiledGrammar::MaskOf(const StackTop& top) const {
  {
    const absl::MutexLock lock(&mutex_);
    const auto found = masks_.find(top);
    if (found != masks_.end()) return found->second;
  }
  auto mask = ComputeMask(top);
  const size_t tokens = mask->allowed.size() + mask->open.size();
  const absl::MutexLock lock(&mutex_);
  if (cached_tokens_ + tokens > kMaxCachedTokens) return mask;
  cached_tokens_ += tokens;
  return masks_.try_emplace(top, std::move(mask)).first->second;
}

std::shared_ptr<const LocalMask> CompiledGrammar::ComputeMask(const StackTop& top) const {
  auto mask = std::make_shared<LocalMask>();
  const auto append = [](std::span<const int32_t> tokens, std::vector<int32_t>& to) {
    to.insert(to.end(), tokens.begin(), tokens.end());
  };
  Matcher matcher(grammar_);
  const std::span<const TokenTrie::Node> nodes = trie_->nodes();
  // States and ends of the nodes on the way from the root to the present one.
  std::vector<MatchState> states = {matcher.StartAt(top)};
  std::vector<uint32_t> ends = {nodes[0].end};
  for (uint32_t node = 1; node < nodes.size();) {
    while (node >= ends.back()) ends.pop_back();
    const size_t depth = ends.size();
    if (states.size() <= depth) states.emplace_back();
    MatchState& state = states[depth];
    matcher.Advance(states[depth - 1], nodes[node].byte, state);
    if (state.empty()) {
      node = nodes[node].end;
      continue;
    }
    append(trie_->TokensAt(node), mask->allowed);
    if (std::binary_search(state.begin(), state.end(), kLeft)) {
      append(trie_->TokensBelow(node), mask->open);
    }
    ends.push_back(nodes[node].end);
    ++node;
  }
  return mask;
}

}  // namespace fulgur::grammar

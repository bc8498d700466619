#include "grammar/token_trie.h"

#include <algorithm>
#include <string_view>

namespace fulgur::grammar {
namespace {

std::vector<int32_t> OrdinaryTokens(const text::Tokenizer& tokenizer) {
  std::vector<int32_t> tokens;
  for (int32_t id = 0; id < tokenizer.vocab_size(); ++id) {
    if (!tokenizer.IsAdded(id) && !tokenizer.TokenBytes(id).empty()) tokens.push_back(id);
  }
  std::sort(tokens.begin(), tokens.end(), [&](int32_t a, int32_t b) {
    return std::pair(tokenizer.TokenBytes(a), a) < std::pair(tokenizer.TokenBytes(b), b);
  });
  return tokens;
}

size_t CommonPrefix(std::string_view a, std::string_view b) {
  const auto shorter = std::min(a.size(), b.size());
  return static_cast<size_t>(
      std::mismatch(a.begin(), a.begin() + static_cast<long>(shorter), b.begin()).first -
      a.begin());
}

}  // namespace

TokenTrie::TokenTrie(const text::Tokenizer& tokenizer) : tokens_(OrdinaryTokens(tokenizer)) {
  nodes_.emplace_back();
  std::vector<uint32_t> path = {0};  // from the root to the node of the latest token
  const auto close_down_to = [&](size_t depth) {
    for (; path.size() > depth + 1; path.pop_back()) {
      nodes_[path.back()].end = static_cast<uint32_t>(nodes_.size());
    }
  };
  std::string_view previous;
  for (uint32_t i = 0; i < tokens_.size(); ++i) {
    const std::string_view bytes = tokenizer.TokenBytes(tokens_[i]);
    size_t depth = CommonPrefix(previous, bytes);
    close_down_to(depth);
    for (; depth < bytes.size(); ++depth) {
      path.push_back(static_cast<uint32_t>(nodes_.size()));
      nodes_.push_back(
          {.first_token = i, .tokens_below = i, .byte = static_cast<uint8_t>(bytes[depth])});
    }
    nodes_[path.back()].tokens_below = i + 1;
    previous = bytes;
  }
  close_down_to(0);
  nodes_[0].end = static_cast<uint32_t>(nodes_.size());
}

std::span<const int32_t> TokenTrie::TokensBelow(uint32_t node) const {
  const uint32_t end = nodes_[node].end;
  const auto last = end == nodes_.size() ? tokens_.size() : nodes_[end].first_token;
  return std::span(tokens_).subspan(nodes_[node].tokens_below, last - nodes_[node].tokens_below);
}

}  // namespace fulgur::grammar

#include "grammar/token_trie.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include "grammar/grammar.h"

namespace fulgur::grammar {
namespace {

// Empty: the token is part of no format. The mark itself is a byte of no text, but vocabularies of
// bytes have a token for it.
std::string Spelling(const text::Tokenizer& tokenizer, int32_t token) {
  constexpr char kMark = static_cast<char>(kAddedTokenMark);
  std::string bytes(tokenizer.TokenBytes(token));
  if (tokenizer.IsAdded(token)) return bytes.empty() ? bytes : kMark + bytes;
  return bytes.find(kMark) == std::string::npos ? bytes : "";
}

using SpeltToken = std::pair<std::string, int32_t>;

std::vector<SpeltToken> SpeltTokens(const text::Tokenizer& tokenizer) {
  std::vector<SpeltToken> tokens;
  for (int32_t id = 0; id < tokenizer.vocab_size(); ++id) {
    std::string spelling = Spelling(tokenizer, id);
    if (!spelling.empty()) tokens.emplace_back(std::move(spelling), id);
  }
  std::sort(tokens.begin(), tokens.end());
  return tokens;
}

size_t CommonPrefix(std::string_view a, std::string_view b) {
  const auto shorter = std::min(a.size(), b.size());
  return static_cast<size_t>(
      std::mismatch(a.begin(), a.begin() + static_cast<long>(shorter), b.begin()).first -
      a.begin());
}

}  // namespace

TokenTrie::TokenTrie(const text::Tokenizer& tokenizer) {
  const std::vector<SpeltToken> tokens = SpeltTokens(tokenizer);
  nodes_.emplace_back();
  std::vector<uint32_t> path = {0};  // from the root to the node of the latest token
  const auto close_down_to = [&](size_t depth) {
    for (; path.size() > depth + 1; path.pop_back()) {
      nodes_[path.back()].end = static_cast<uint32_t>(nodes_.size());
    }
  };
  std::string_view previous;
  for (const auto& [bytes, token] : tokens) {
    const auto i = static_cast<uint32_t>(tokens_.size());
    tokens_.push_back(token);
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

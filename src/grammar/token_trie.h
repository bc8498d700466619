// The tokens of a vocabulary as a tree of bytes, so that a walk over it meets every shared
// beginning once. Added tokens are spelt with their mark.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "text/tokenizer.h"

namespace fulgur::grammar {

class TokenTrie {
 public:
  // In depth-first order: the children of a node follow it, up to `end`.
  struct Node {
    uint32_t end = 0;          // the first node behind this one's descendants
    uint32_t first_token = 0;  // in Tokens(): those that end here ...
    uint32_t tokens_below =
        0;  // ... then those of its descendants, up to the `first_token` of `end`
    uint8_t byte = 0;
  };

  explicit TokenTrie(const text::Tokenizer& tokenizer);

  // Node 0 is the root and has no byte.
  std::span<const Node> nodes() const { return nodes_; }
  // Tokens that end at a node, and all that end below it (without those).
  std::span<const int32_t> TokensAt(uint32_t node) const {
    return std::span(tokens_).subspan(nodes_[node].first_token,
                                      nodes_[node].tokens_below - nodes_[node].first_token);
  }
  std::span<const int32_t> TokensBelow(uint32_t node) const;

 private:
  std::vector<Node> nodes_;
  std::vector<int32_t> tokens_;  // in the order of their bytes
};

}  // namespace fulgur::grammar

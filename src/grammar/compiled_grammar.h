// A grammar together with the vocabulary that it will be spoken in: says which tokens may follow.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/synchronization/mutex.h"
#include "grammar/grammar.h"
#include "grammar/matcher.h"
#include "grammar/token_trie.h"
#include "text/tokenizer.h"

namespace fulgur::grammar {

// What the top of a stack allows, whatever lies below.
struct LocalMask {
  std::vector<int32_t> allowed;  // tokens that are used up before the top is
  std::vector<int32_t> open;     // tokens that reach further: allowed or not by what lies below
};

// Immutable but for a cache; shared by the requests that ask for the same format, on any thread.
class CompiledGrammar {
 public:
  CompiledGrammar(Grammar grammar, text::Tokenizer tokenizer,
                  std::shared_ptr<const TokenTrie> trie);

  const Grammar& grammar() const { return grammar_; }
  const text::Tokenizer& tokenizer() const { return tokenizer_; }
  // How much of a stack a mask is made for: enough for the inside of a JSON string to know that it
  // goes on until a quote, little enough for all strings of a schema to be the same.
  static constexpr size_t kTopDepth = 3;

  // Walks the vocabulary when first asked for.
  std::shared_ptr<const LocalMask> MaskOf(const StackTop& top) const;

 private:
  // Tokens in the masks that are kept; about 64 MB.
  static constexpr size_t kMaxCachedTokens = 1 << 24;

  std::shared_ptr<const LocalMask> ComputeMask(const StackTop& top) const;

  const Grammar grammar_;
  const text::Tokenizer tokenizer_;
  const std::shared_ptr<const TokenTrie> trie_;
  mutable absl::Mutex mutex_;
  mutable absl::flat_hash_map<StackTop, std::shared_ptr<const LocalMask>> masks_
      ABSL_GUARDED_BY(mutex_);
  mutable size_t cached_tokens_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace fulgur::grammar

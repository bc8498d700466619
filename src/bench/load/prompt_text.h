// Prompt texts of an exact length in tokens.
//
// Texts cut from random ids rarely keep their length when they are tokenised again. So prompts are
// built from stable words: tokens of a space and letters that stay themselves next to each other.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "bench/load/random.h"
#include "text/tokenizer.h"

namespace fulgur::bench {

enum class Corpus {
  kWords,  // random words: no text that a model knows
  kProse,  // plain sentences
  kCode,   // program text
};

struct SizedText {
  std::string text;
  int64_t tokens = 0;
  bool exact = true;  // false: estimated, or no text of that length could be found
};

// One thread, and one instance a thread.
class PromptText {
 public:
  // Without a tokenizer lengths are estimates: one common word a token.
  PromptText(std::optional<text::Tokenizer> tokenizer, Corpus corpus);

  // A text of `tokens` tokens; `opening` (such as an unique first word) counts among them.
  SizedText Make(int64_t tokens, RandomStream& random) const;

  // Words only, each behind a space, so that pieces can be put together without changing counts.
  SizedText MakeBlock(int64_t tokens, RandomStream& random) const;

  // The tokens of a text, or an estimate without a tokenizer.
  int64_t Count(std::string_view text) const;

  bool has_tokenizer() const { return tokenizer_.has_value(); }
  size_t num_words() const { return words_.size(); }

  // Without a tokenizer: how many tokens a word has, as a server's answer told.
  void set_tokens_per_word(double value) { tokens_per_word_ = value; }

 private:
  void FindStableWords();
  const std::string& AnyWord(RandomStream& random) const;
  SizedText Fit(std::string text, int64_t tokens, RandomStream& random) const;

  std::optional<text::Tokenizer> tokenizer_;
  Corpus corpus_;
  std::vector<std::string> words_;  // with their leading space
  double tokens_per_word_ = 1.0;
};

}  // namespace fulgur::bench

#include "bench/load/prompt_text.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "bench/load/sentences.h"

namespace fulgur::bench {
namespace {

constexpr int kMaxFits = 8;
constexpr size_t kFewWords = 64;
constexpr size_t kMaxWords = 30'000;
constexpr int kPartners = 8;
constexpr size_t kLongestWord = 12;

// Common words, each one token in most vocabularies.
constexpr std::array<std::string_view, 64> kCommonWords = {
    " time",   " year",   " people", " way",   " day",    " thing",  " world",  " life",
    " hand",   " part",   " child",  " eye",   " woman",  " place",  " work",   " week",
    " case",   " point",  " number", " group", " fact",   " water",  " room",   " area",
    " money",  " story",  " month",  " right", " study",  " book",   " word",   " issue",
    " side",   " kind",   " head",   " house", " power",  " hour",   " game",   " line",
    " end",    " member", " law",    " car",   " city",   " name",   " team",   " minute",
    " idea",   " body",   " back",   " face",  " level",  " office", " door",   " health",
    " person", " art",    " war",    " party", " result", " change", " reason", " morning"};

bool IsWord(std::string_view bytes, size_t shortest) {
  if (bytes.size() < shortest + 1 || bytes.size() > kLongestWord + 1 || bytes[0] != ' ') {
    return false;
  }
  return std::all_of(bytes.begin() + 1, bytes.end(),
                     [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); });
}

std::vector<int32_t> WordIds(const text::Tokenizer& tokenizer, size_t shortest) {
  std::vector<int32_t> ids;
  for (int32_t id = 0; id < tokenizer.vocab_size() && ids.size() < kMaxWords; ++id) {
    const std::string_view bytes = tokenizer.TokenBytes(id);
    if (tokenizer.IsAdded(id) || !IsWord(bytes, shortest)) continue;
    if (tokenizer.Encode(bytes) == std::vector<int32_t>{id}) ids.push_back(id);
  }
  return ids;
}

std::string Joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += word;
  return text;
}

}  // namespace

PromptText::PromptText(std::optional<text::Tokenizer> tokenizer, Corpus corpus)
    : tokenizer_(std::move(tokenizer)), corpus_(corpus) {
  if (tokenizer_) FindStableWords();
  if (words_.empty()) words_.assign(kCommonWords.begin(), kCommonWords.end());
}

void PromptText::FindStableWords() {
  std::vector<int32_t> ids = WordIds(*tokenizer_, 2);
  if (ids.size() < kFewWords) ids = WordIds(*tokenizer_, 1);  // a very small vocabulary
  RandomStream random(0, "partners");
  for (const int32_t id : ids) {
    bool stable = true;
    for (int i = 0; i < kPartners && stable; ++i) {
      const int32_t partner = ids[random.Below(ids.size())];
      const std::string pair =
          std::string(tokenizer_->TokenBytes(id)) + std::string(tokenizer_->TokenBytes(partner));
      stable = tokenizer_->Encode(pair) == std::vector<int32_t>{id, partner};
    }
    if (stable) words_.emplace_back(tokenizer_->TokenBytes(id));
  }
}

const std::string& PromptText::AnyWord(RandomStream& random) const {
  return words_[random.Below(words_.size())];
}

int64_t PromptText::Count(std::string_view text) const {
  if (tokenizer_) {
    return static_cast<int64_t>(tokenizer_->CountTokens(text, {.match_added_tokens = false}));
  }
  const auto spaces = std::count(text.begin(), text.end(), ' ');
  return std::llround(static_cast<double>(spaces) * tokens_per_word_);
}

SizedText PromptText::MakeBlock(int64_t tokens, RandomStream& random) const {
  const auto count =
      tokenizer_
          ? tokens
          : std::max<int64_t>(1, std::llround(static_cast<double>(tokens) / tokens_per_word_));
  std::vector<std::string> words;
  words.reserve(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) words.push_back(AnyWord(random));
  return {Joined(words), tokens, tokenizer_.has_value()};
}

SizedText PromptText::Make(int64_t tokens, RandomStream& random) const {
  if (corpus_ == Corpus::kWords || !tokenizer_) {
    SizedText block = MakeBlock(tokens, random);
    return tokenizer_ ? Fit(std::move(block.text), tokens, random) : block;
  }
  std::string text;
  // Sentences behind each other, a little more than enough: most words are at least one token.
  for (int64_t words = 0; words < tokens + 8;) {
    const std::string sentence =
        corpus_ == Corpus::kProse ? ProseSentence(random) : CodeLine(random);
    words += 1 + std::count(sentence.begin(), sentence.end(), ' ');
    text += sentence;
  }
  std::vector<int32_t> ids = tokenizer_->Encode(text, {.match_added_tokens = false});
  if (ids.size() > static_cast<size_t>(tokens)) ids.resize(static_cast<size_t>(tokens));
  return Fit(tokenizer_->Decode(ids), tokens, random);
}

// Adds or takes away words at the end until the length is right.
SizedText PromptText::Fit(std::string text, int64_t tokens, RandomStream& random) const {
  for (int i = 0; i < kMaxFits; ++i) {
    const int64_t count = Count(text);
    if (count == tokens) return {std::move(text), tokens, true};
    for (int64_t missing = count; missing < tokens; ++missing) text += AnyWord(random);
    for (int64_t surplus = count; surplus > tokens; --surplus) {
      const size_t space = text.rfind(' ');
      if (space == std::string::npos || space == 0) break;
      text.resize(space);
    }
  }
  const int64_t count = Count(text);
  return {std::move(text), count, count == tokens};
}

}  // namespace fulgur::bench

#include "text/pre_tokenizer.h"

#include <gtest/gtest.h>

#include <random>

#include "text/testing/fixtures.h"
#include "text/utf8.h"

namespace fulgur::text {
namespace {

constexpr const char* kNumbers = R"(\p{N}{1,3})";
constexpr const char* kCjk = "[一-龥぀-ゟ゠-ヿ]+";
constexpr const char* kWords =
    "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+"
    "|[^\r\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+"
    "| ?[\\p{P}\\p{S}]+[\r\n]*"
    "|\\s*[\r\n]+|\\s+(?!\\S)|\\s+";

std::vector<std::string> Split(const PreTokenizer& pre_tokenizer, std::string_view text) {
  std::vector<std::string> pieces;
  pre_tokenizer.Split(text, [&](std::string_view piece) {
    pieces.emplace_back(piece);
    return true;
  });
  return pieces;
}

std::vector<std::string> Matches(const SplitRule& rule, std::string_view text) {
  std::vector<std::string> matches;
  size_t at = 0;
  while (auto match = rule.FindNext(text, at)) {
    matches.emplace_back(text.substr(match->begin, match->end - match->begin));
    at = match->end;
  }
  return matches;
}

PreTokenizer DeepSeek() {
  PreTokenizer pre_tokenizer;
  for (const char* pattern : {kNumbers, kCjk, kWords}) {
    EXPECT_TRUE(pre_tokenizer.AddSplit(pattern).ok());
  }
  return pre_tokenizer;
}

TEST(PreTokenizerTest, SplitsAsTheReference) {
  const PreTokenizer pre_tokenizer = DeepSeek();
  for (const auto& c : testing::ReadCases("tokenizer_vectors.json", "pieces")) {
    const auto text = c["text"].get<std::string>();
    EXPECT_EQ(Split(pre_tokenizer, text), c["pieces"].get<std::vector<std::string>>()) << text;
  }
}

TEST(PreTokenizerTest, EveryPassSeesThePiecesOfTheOneBefore) {
  EXPECT_EQ(Split(DeepSeek(), "= 2"), (std::vector<std::string>{"=", " ", "2"}));
  EXPECT_EQ(Split(DeepSeek(), "x = 12345"),
            (std::vector<std::string>{"x", " =", " ", "123", "45"}));
}

TEST(PreTokenizerTest, StopsWhenToldTo) {
  int pieces = 0;
  DeepSeek().Split("one two three", [&](std::string_view) { return ++pieces < 2; });
  EXPECT_EQ(pieces, 2);
}

// The scanners and the regular expressions they stand for, on characters about which PCRE2's
// Unicode version and its idea of white space agree with the reference.
TEST(PreTokenizerTest, ScannersMatchLikeTheirPatterns) {
  const unsigned seed = 3;
  SCOPED_TRACE(::testing::Message() << "seed " << seed);
  std::mt19937 rng(seed);
  const std::vector<std::string> alphabet = {
      "a",      "Z",      "é",      "ß",  "中", "龥",     "龦",     "ん",     "カ",     "゠",
      " ",      " ",      "\t",     "\n", "\r", "\u00A0", "　",     "\u2028", "\u0085", "1",
      "٣",      "½",      "Ⅳ",      ".",  "!",  "_",      "$",      "+",      "，",     "€",
      "\u0301", "\u200D", "\u0001", "<",  "|",  "｜",     "\u00AD", "\uFEFF", "😀",      "\u093E"};
  for (const char* pattern : {kNumbers, R"(\p{N})", kCjk, kWords}) {
    const auto scanned = MakeScannedRule(pattern);
    const auto regex = MakeRegexRule(pattern);
    ASSERT_NE(scanned, nullptr) << pattern;
    ASSERT_TRUE(regex.ok()) << regex.status();
    for (int round = 0; round < 20'000; ++round) {
      std::string text;
      for (size_t n = rng() % 10; n > 0; --n) text += alphabet[rng() % alphabet.size()];
      ASSERT_EQ(Matches(*scanned, text), Matches(**regex, text)) << pattern << " on " << text;
    }
  }
}

TEST(PreTokenizerTest, OtherPatternsRunAsRegularExpressions) {
  PreTokenizer pre_tokenizer;
  ASSERT_TRUE(pre_tokenizer.AddSplit("[0-9]+|x").ok());
  EXPECT_EQ(Split(pre_tokenizer, "ax12b"), (std::vector<std::string>{"a", "x", "12", "b"}));
}

TEST(PreTokenizerTest, RefusesWhatIsNoRegularExpression) {
  PreTokenizer pre_tokenizer;
  const absl::Status status = pre_tokenizer.AddSplit("(unclosed");
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
}

TEST(PreTokenizerTest, AHostilePatternEndsSoonAndLosesNothing) {
  PreTokenizer pre_tokenizer;
  ASSERT_TRUE(pre_tokenizer.AddSplit("(a+)+$|(?:)|\\Kb|c").ok());
  const std::string text = std::string(60, 'a') + "b";
  std::string joined;
  pre_tokenizer.Split(text, [&](std::string_view piece) {
    joined += piece;
    return true;
  });
  EXPECT_EQ(joined, text);
}

TEST(PreTokenizerTest, LongRunsAreLinear) {
  for (const char* unit : {"a", " ", "\n", "=", "中", "1", "\u0301", "😀", "\u0001"}) {
    std::string text;
    while (text.size() < 2'000'000) text += unit;
    size_t bytes = 0;
    DeepSeek().Split(text, [&](std::string_view piece) {
      bytes += piece.size();
      return true;
    });
    EXPECT_EQ(bytes, text.size());
  }
}

}  // namespace
}  // namespace fulgur::text

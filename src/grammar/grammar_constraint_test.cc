#include "grammar/grammar_constraint.h"

#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <string>
#include <vector>

#include "grammar/format_harness.h"
#include "text/json.h"

namespace fulgur::grammar {
namespace {

using Kind = OutputFormat::Kind;

const text::Tokenizer& DemoTokenizer() {
  static const text::Tokenizer tokenizer = *text::Tokenizer::Load("models/demo/tokenizer.json");
  return tokenizer;
}

// What the masks are meant to say: a token is allowed if its bytes lead somewhere.
class PlainWalk {
 public:
  explicit PlainWalk(const Grammar& grammar) : matcher_(grammar), state_(matcher_.Start()) {}

  MatchState After(std::string_view bytes) {
    MatchState state = state_, next;
    for (const char byte : bytes) {
      matcher_.Advance(state, static_cast<uint8_t>(byte), next);
      std::swap(state, next);
    }
    return state;
  }
  void Take(std::string_view bytes) { state_ = After(bytes); }

 private:
  Matcher matcher_;
  MatchState state_;
};

const OutputFormat kFormats[] = {
    {.kind = Kind::kJsonObject, .source = "", .spacing = {}},
    FormatOf(Kind::kJsonSchema,
             R"({"type": "object", "properties": {"city": {"type": "string", "maxLength": 12},
                 "count": {"type": "integer", "minimum": 1, "maximum": 30},
                 "kind": {"enum": ["warm", "wet", "冷"]}}, "required": ["city", "kind"],
                 "additionalProperties": {"type": "number"}})"),
    FormatOf(Kind::kRegex, "(the |an? )*[a-z]{1,9}( 中.*)?"),
    FormatOf(Kind::kChoice, R"(["yes", "yes, but", "no", "不"])"),
    FormatOf(Kind::kEbnf, "root ::= (\"ab\" | \"a\" | \"b\")* \"!\" root | \"end\""),
};

class GrammarConstraintTest : public testing::TestWithParam<size_t> {
 protected:
  FormatCompiler compiler_{DemoTokenizer()};
};

INSTANTIATE_TEST_SUITE_P(, GrammarConstraintTest, testing::Range<size_t>(0, 5));

// Walks at random, and at every step holds each token of the vocabulary against the grammar itself.
TEST_P(GrammarConstraintTest, AllowsExactlyTheTokensThatLeadSomewhere) {
  const auto grammar = *compiler_.Compile(kFormats[GetParam()]);
  std::mt19937 random(17);
  for (int walk = 0; walk < 2; ++walk) {
    GrammarConstraint constraint(grammar, std::nullopt);
    PlainWalk plain(grammar->grammar());
    std::string text;
    for (int step = 0; step < 6; ++step) {
      const auto allowed = *constraint.Allowed();
      std::vector<int32_t> fitting;
      for (int32_t token = 0; token < DemoTokenizer().vocab_size(); ++token) {
        const std::string_view bytes = DemoTokenizer().TokenBytes(token);
        const bool fits =
            !DemoTokenizer().IsAdded(token) && !bytes.empty() && !plain.After(bytes).empty();
        ASSERT_EQ(allowed.Has(token), fits) << text << " then " << bytes;
        if (fits) fitting.push_back(token);
      }
      EXPECT_EQ(allowed.end, HasFormat(text, kFormats[GetParam()])) << text;
      if (fitting.empty()) break;
      const int32_t token = fitting[random() % fitting.size()];
      constraint.Accept(token);
      plain.Take(DemoTokenizer().TokenBytes(token));
      text += DemoTokenizer().TokenBytes(token);
    }
  }
}

TEST_P(GrammarConstraintTest, EveryWalkThatEndsHasTheFormat) {
  const auto grammar = *compiler_.Compile(kFormats[GetParam()]);
  std::mt19937 random(3);
  int ended = 0;
  for (int walk = 0; walk < 20; ++walk) {
    GrammarConstraint constraint(grammar, std::nullopt);
    std::string text;
    for (int step = 0; step < 200; ++step) {
      const auto allowed = *constraint.Allowed();
      if (allowed.end && random() % 2 == 0) {
        ++ended;
        EXPECT_TRUE(HasFormat(text, kFormats[GetParam()])) << text;
        if (kFormats[GetParam()].kind == Kind::kJsonSchema) {
          EXPECT_TRUE(text::ParseJson(text).ok()) << text;
        }
        break;
      }
      std::vector<int32_t> fitting;
      for (int32_t token = 0; token < DemoTokenizer().vocab_size(); ++token) {
        if (allowed.Has(token)) fitting.push_back(token);
      }
      if (fitting.empty()) break;
      const int32_t token = fitting[random() % fitting.size()];
      constraint.Accept(token);
      text += DemoTokenizer().TokenBytes(token);
    }
  }
  EXPECT_GT(ended, 0);
}

TEST(GrammarConstraintStartTest, WaitsForTheEndOfTheReasoning) {
  FormatCompiler compiler(DemoTokenizer());
  const int32_t close = *DemoTokenizer().FindAddedToken("</think>");
  GrammarConstraint constraint(*compiler.Compile(FormatOf(Kind::kChoice, R"(["yes"])")), close);
  const std::vector<int32_t> thoughts = DemoTokenizer().Encode("Let me see: no, it is {");
  for (const int32_t token : thoughts) {
    EXPECT_FALSE(constraint.active());
    constraint.Accept(token);
  }
  constraint.Accept(close);
  ASSERT_TRUE(constraint.active());
  const auto allowed = *constraint.Allowed();
  EXPECT_FALSE(allowed.end);
  EXPECT_FALSE(allowed.Has(thoughts.front()));
  EXPECT_TRUE(allowed.Has(DemoTokenizer().Encode("yes").front()));
}

TEST(GrammarConstraintStartTest, ATokenOutsideIsNoticed) {
  FormatCompiler compiler(DemoTokenizer());
  GrammarConstraint constraint(*compiler.Compile(FormatOf(Kind::kChoice, R"(["yes"])")),
                               std::nullopt);
  constraint.Accept(DemoTokenizer().Encode("no").front());
  EXPECT_EQ(constraint.Allowed().status().code(), absl::StatusCode::kInternal);
}

TEST(FormatCompilerTest, KeepsTheLatestFormats) {
  FormatCompiler compiler(DemoTokenizer());
  const auto first = *compiler.Compile(kFormats[0]);
  EXPECT_EQ(first, *compiler.Compile(kFormats[0]));
  EXPECT_NE(first, *compiler.Compile(kFormats[3]));
}

TEST(FormatCompilerTest, AmbiguityIsFoundOutInsteadOfFollowed) {
  const OutputFormat ambiguous = FormatOf(Kind::kRegex, "(" + std::string(20'000, 'a') + ")?");
  EXPECT_TRUE(BuildGrammar(ambiguous).ok());
  std::string optional;
  for (int i = 0; i < 10'000; ++i) optional += "a?";
  EXPECT_EQ(ErrorOf(FormatOf(Kind::kRegex, optional)), "the format is too ambiguous");
}

}  // namespace
}  // namespace fulgur::grammar

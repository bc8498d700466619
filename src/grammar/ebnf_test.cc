#include "grammar/ebnf.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "grammar/format_harness.h"

namespace fulgur::grammar {
namespace {

using ::testing::HasSubstr;

OutputFormat Ebnf(std::string text) { return FormatOf(OutputFormat::Kind::kEbnf, std::move(text)); }

TEST(EbnfTest, RulesMayFollowInAnyOrder) {
  const OutputFormat sums = Ebnf(R"ebnf(
    # sums of whole numbers
    root   ::= term (" + " term)*   # one or more
    term   ::= number
             | "(" root ")"
    number ::= [1-9] [0-9]{0,3} | "0"
  )ebnf");
  EXPECT_TRUE(HasFormat("12 + (3 + 0) + 4000", sums));
  EXPECT_FALSE(HasFormat("12 +", sums));
  EXPECT_FALSE(HasFormat("012", sums));
  EXPECT_FALSE(HasFormat("((1)", sums));
}

TEST(EbnfTest, EscapesAndClasses) {
  EXPECT_TRUE(HasFormat("\"\n\t中]", Ebnf("root ::= \"\\\"\\n\\t\\u4e2d\" [\\]]")));
  EXPECT_TRUE(HasFormat("xyz", Ebnf("root ::= [^a-w\\n]{3}")));
  EXPECT_FALSE(HasFormat("xyw", Ebnf("root ::= [^a-w\\n]{3}")));
  EXPECT_TRUE(HasFormat("🙂", Ebnf("root ::= \"\\U0001F642\"")));
}

TEST(EbnfTest, RightRecursionGoesOnForEver) {
  const OutputFormat list = Ebnf("root ::= \"a\" | \"a\" root");
  EXPECT_TRUE(HasFormat(std::string(10'000, 'a'), list));
}

TEST(EbnfTest, ErrorsSayWhatAndWhere) {
  EXPECT_THAT(ErrorOf(Ebnf("")), HasSubstr("it is empty"));
  EXPECT_THAT(ErrorOf(Ebnf("answer ::= \"a\"")), HasSubstr("no rule `root`"));
  EXPECT_THAT(ErrorOf(Ebnf("root ::= other")), HasSubstr("uses the rule `other`"));
  EXPECT_THAT(ErrorOf(Ebnf("root ::= \"a\" ) b")), HasSubstr("a rule is expected"));
  EXPECT_THAT(ErrorOf(Ebnf("root ::= \"a\"\nroot ::= \"b\"")), HasSubstr("defined twice"));
  EXPECT_THAT(ErrorOf(Ebnf("root ::= \"a")), HasSubstr("a text is not closed"));
  EXPECT_THAT(ErrorOf(Ebnf("root ::= (\"a\"")), HasSubstr("a group is not closed"));
  EXPECT_THAT(ErrorOf(Ebnf("root = \"a\"")), HasSubstr("at byte 0: a rule is expected"));
  EXPECT_THAT(ErrorOf(Ebnf("root ::= root \"a\" | \"b\"")), HasSubstr("begins with itself"));
  EXPECT_THAT(ErrorOf(Ebnf("root ::= x \"a\"\nx ::= y | \"\"\ny ::= root")),
              HasSubstr("begins with itself"));
  EXPECT_THAT(ErrorOf(Ebnf("root ::= root")), HasSubstr("no answer can have this format"));
  EXPECT_THAT(ErrorOf(Ebnf("root ::= \"\\q\"")), HasSubstr("may stand before"));
}

}  // namespace
}  // namespace fulgur::grammar

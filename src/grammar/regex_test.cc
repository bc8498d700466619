#include "grammar/regex.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "grammar/format_harness.h"

namespace fulgur::grammar {
namespace {

using ::testing::HasSubstr;

bool Matches(std::string_view text, std::string pattern) {
  return HasFormat(text, FormatOf(OutputFormat::Kind::kRegex, std::move(pattern)));
}

struct Case {
  const char* pattern;
  const char* text;
  bool matches;
};

class RegexTest : public testing::TestWithParam<Case> {};

TEST_P(RegexTest, MatchesTheWholeText) {
  EXPECT_EQ(Matches(GetParam().text, GetParam().pattern), GetParam().matches)
      << GetParam().pattern << " on " << GetParam().text;
}

INSTANTIATE_TEST_SUITE_P(
    , RegexTest,
    testing::Values(
        Case{"abc", "abc", true}, Case{"abc", "abcd", false}, Case{"abc", "ab", false},
        Case{"a|bc|", "bc", true}, Case{"a|bc|", "", true}, Case{"a|bc|", "c", false},
        Case{"a*", "", true}, Case{"a*", "aaaa", true}, Case{"a+", "", false},
        Case{"a+?", "aa", true}, Case{"a{2,3}", "a", false}, Case{"a{2,3}", "aaa", true},
        Case{"a{2,3}", "aaaa", false}, Case{"a{2}", "aa", true}, Case{"a{2,}", "aaaaa", true},
        Case{"(ab){2}c?", "abab", true}, Case{"[a-c_]+", "abc_", true}, Case{"[a-c]", "d", false},
        Case{"[^a-c]", "d", true}, Case{"[^a-c]", "b", false}, Case{"[^a]", "中", true},
        Case{"[一-龥]+", "中文", true}, Case{"[一-龥]+", "ab", false}, Case{".", "\n", false},
        Case{".", "🙂", true}, Case{"\\d{3}-\\w+", "123-a_9", true}, Case{"\\D", "5", false},
        Case{"\\s\\S", " x", true}, Case{"\\.\\*\\\\", ".*\\", true},
        Case{"\\x41\\u4e2d\\u{1F642}", "A中🙂", true}, Case{"^ab$", "ab", true},
        Case{"(?:a|b)+", "abba", true}, Case{"(?P<n>a)b", "ab", true}, Case{"[a\\]]+", "a]", true},
        Case{"[a-]+", "a-", true}, Case{"(a?){3}", "aa", true}, Case{"(a*)*b", "aaab", true}),
    [](const auto& info) { return "Case" + std::to_string(info.index); });

struct BadCase {
  std::string pattern;
  const char* problem;
};

TEST(RegexErrorsTest, SayWhatAndWhere) {
  const BadCase cases[] = {
      {"", "it is empty"},
      {"ab**", "at byte 3: a repetition is repeated"},
      {"[]a]", "a character class is empty"},
      {"[a-", "a character class is not closed"},
      {"(", "a group is not closed"},
      {"a)", "there is no group"},
      {"(?<=x)y", "look-around"},
      {"\\", "there is nothing behind"},
      {"(a)\\1", "back-references"},
      {"\\bword", "assertions"},
      {"*a", "there is nothing to repeat"},
      {"a{3,2}", "larger number first"},
      {"a{x}", "a repetition is expected"},
      {"a{1,100000}", "may ask for at most 65536"},
      {"[z-a]", "no range"},
      {"\\u12", "4 hexadecimal digits"},
      {"\\ud800", "no such character"},
      {std::string(100'000, 'a'), "may have at most 65536"},
      {std::string(300, '(') + std::string(300, ')'), "nested too deep"},
      {"\xff", "not valid UTF-8"},
  };
  for (const BadCase& bad : cases) {
    const std::string error = ErrorOf(FormatOf(OutputFormat::Kind::kRegex, bad.pattern));
    EXPECT_THAT(error, HasSubstr(bad.problem)) << bad.pattern.substr(0, 40);
  }
}

TEST(RegexErrorsTest, RulesAreLimitedInNumberNotInWhatTheySay) {
  EXPECT_EQ(ErrorOf(FormatOf(OutputFormat::Kind::kRegex, "((a{9999}){9999}){9999}")), "");
  const std::string large = "a{1,60000}b{1,60000}c{1,60000}";
  EXPECT_THAT(ErrorOf(FormatOf(OutputFormat::Kind::kRegex, large)), HasSubstr("too large"));
}

}  // namespace
}  // namespace fulgur::grammar

#include "text/stop_strings.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace fulgur::text {
namespace {

TEST(StopStringsTest, HoldsBackOnlyWhatMayBeginOne) {
  StopStringMatcher matcher({"\nObservation:"}, false);
  EXPECT_EQ(matcher.Push("Action: x"), "Action: x");
  EXPECT_EQ(matcher.Push("\nObs"), "");
  EXPECT_EQ(matcher.Push("cure\nOb"), "\nObscure");
  EXPECT_EQ(matcher.Push("servation: y"), "");
  EXPECT_TRUE(matcher.stopped());
  EXPECT_EQ(matcher.matched(), "\nObservation:");
  EXPECT_EQ(matcher.Push("more"), "");
  EXPECT_EQ(matcher.Finish(), "");
}

TEST(StopStringsTest, FlushesAtTheEnd) {
  StopStringMatcher matcher({"STOP"}, false);
  EXPECT_EQ(matcher.Push("well ST"), "well ");
  EXPECT_EQ(matcher.Finish(), "ST");
  EXPECT_FALSE(matcher.stopped());
}

TEST(StopStringsTest, MayIncludeTheStopString) {
  StopStringMatcher matcher({"END"}, true);
  EXPECT_EQ(matcher.Push("the EN"), "the ");
  EXPECT_EQ(matcher.Push("D of"), "END");
}

TEST(StopStringsTest, WithoutStopStringsNothingIsHeld) {
  StopStringMatcher matcher({"", ""}, false);
  EXPECT_EQ(matcher.Push("anything"), "anything");
  EXPECT_FALSE(matcher.stopped());
}

TEST(StopStringsTest, OfSeveralTheFirstToEndWinsThenTheLongest) {
  StopStringMatcher a({"bcd", "abcde", "c"}, false);
  EXPECT_EQ(a.Push("xabcde"), "xab");
  EXPECT_EQ(a.matched(), "c");
  StopStringMatcher b({"c", "abc", "bc"}, false);
  EXPECT_EQ(b.Push("xabc"), "x");
  EXPECT_EQ(b.matched(), "abc");
}

TEST(StopStringsTest, OnesThatEndTooEarlyDoNotCount) {
  StopStringMatcher matcher({"END"}, false);
  EXPECT_EQ(matcher.Push("the END of EN", false), "the END of ");
  EXPECT_FALSE(matcher.stopped());
  EXPECT_EQ(matcher.Push("Dless"), "");
  EXPECT_TRUE(matcher.stopped()) << "it ends in a later piece";
}

struct Expected {
  std::string text;
  std::string stop;
};

Expected Naive(const std::string& text, const std::vector<std::string>& stops, bool include) {
  for (size_t end = 1; end <= text.size(); ++end) {
    std::string longest;
    for (const std::string& stop : stops) {
      if (stop.size() > longest.size() && text.substr(0, end).ends_with(stop)) longest = stop;
    }
    if (!longest.empty()) return {text.substr(0, include ? end : end - longest.size()), longest};
  }
  return {text, ""};
}

TEST(StopStringsTest, AgreesWithTheDefinitionForEveryCutting) {
  const unsigned seed = 41;
  SCOPED_TRACE(::testing::Message() << "seed " << seed);
  std::mt19937 rng(seed);
  const auto random_text = [&](size_t longest) {
    std::string text(rng() % (longest + 1), 'a');
    for (char& c : text) c = static_cast<char>('a' + rng() % 3);
    return text;
  };
  for (int round = 0; round < 20'000; ++round) {
    std::vector<std::string> stops(rng() % 4);
    for (std::string& stop : stops) stop = random_text(6);
    const std::string text = random_text(30);
    const bool include = rng() % 2 == 0;
    const Expected expected = Naive(text, stops, include);
    StopStringMatcher matcher(stops, include);
    std::string out;
    for (size_t at = 0; at < text.size();) {
      const size_t length = 1 + rng() % 4;
      out += matcher.Push(std::string_view(text).substr(at, length));
      ASSERT_TRUE(expected.text.starts_with(out));
      at += length;
    }
    out += matcher.Finish();
    ASSERT_EQ(out, expected.text);
    ASSERT_EQ(matcher.stopped(), !expected.stop.empty());
    if (matcher.stopped()) {
      ASSERT_EQ(matcher.matched(), expected.stop);
    }
  }
}

TEST(StopStringsTest, TimeIsLinear) {
  // A text that keeps almost matching a long stop string.
  StopStringMatcher matcher({std::string(10'000, 'a') + "b", std::string(5'000, 'a') + "c"}, false);
  size_t bytes = 0;
  for (int i = 0; i < 1'000'000; ++i) bytes += matcher.Push("aa").size();
  EXPECT_EQ(bytes + matcher.Finish().size(), 2'000'000u);
}

}  // namespace
}  // namespace fulgur::text

#include "text/json.h"

#include <gtest/gtest.h>

namespace fulgur::text {
namespace {

std::string Rewrite(std::string_view text, NumberStyle style) {
  const auto value = ParseJson(text);
  return value.ok() ? WriteJson(*value, style) : "refused";
}

TEST(JsonTest, WritesLikePython) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {R"({"a":1,"b":[true,null,{}],"c":[]})", R"({"a": 1, "b": [true, null, {}], "c": []})"},
      {"1.10", "1.1"},
      {"1E5", "100000.0"},
      {"1e16", "1e+16"},
      {"1e15", "1000000000000000.0"},
      {"123456789012345680.0", "1.2345678901234568e+17"},
      {"0.00001", "1e-05"},
      {"0.0001", "0.0001"},
      {"1.5e-7", "1.5e-07"},
      {"1e-400", "0.0"},
      {"-0.0", "-0.0"},
      {"-0", "0"},
      {"5e-324", "5e-324"},
      {"1e100", "1e+100"},
      {"12345678901234567890123", "12345678901234567890123"},
      {R"("\u00e9\/\ud83d\ude00\u0001\u007f\b\f\n\r\t\"\\")",
       "\"é/😀\\u0001\x7F\\b\\f\\n\\r\\t\\\"\\\\\""},
      {R"({"b":1,"a":2,"b":3})", R"({"b": 3, "a": 2})"},
      {" \t\r\n[1 , 2]\n", "[1, 2]"},
  };
  for (const auto& [text, expected] : cases) {
    EXPECT_EQ(Rewrite(text, NumberStyle::kPython), expected) << text;
  }
}

TEST(JsonTest, CanKeepTheSpellingOfNumbers) {
  EXPECT_EQ(Rewrite("[1.10,1E5,-0]", NumberStyle::kAsWritten), "[1.10, 1E5, -0]");
}

TEST(JsonTest, SaysWhereItStopsBeingJson) {
  EXPECT_EQ(std::string(ParseJson("{\"你\": 1,\n \"b\" 2}").status().message()),
            "not valid JSON at line 2, column 6 (byte 16): a colon was expected");
  EXPECT_EQ(std::string(ParseJson("[1").status().message()),
            "not valid JSON at line 1, column 3 (byte 2): a comma or a closing bracket was "
            "expected; the text ends here");
  EXPECT_TRUE(CheckJson(R"({"a": [1, {"b": null}]})").ok());
}

TEST(JsonTest, RefusesWhatIsNotJson) {
  for (const char* text : {"",
                           " ",
                           "nul",
                           "01",
                           "1.",
                           ".5",
                           "+1",
                           "1e",
                           "-",
                           "NaN",
                           "Infinity",
                           "1e999",
                           "-1e999",
                           "[1,]",
                           "{\"a\"}",
                           "{\"a\":}",
                           "{a:1}",
                           "{\"a\":1,}",
                           "[1",
                           "{",
                           "\"",
                           "\"\\x\"",
                           "\"\\u12\"",
                           "\"\\ud800\"",
                           "\"\\udc00\"",
                           "\"\\ud800\\u0041\"",
                           "\"\n\"",
                           "1 2",
                           "\"\xFF\"",
                           "'a'"}) {
    EXPECT_FALSE(ParseJson(text).ok()) << text;
    EXPECT_EQ(CheckJson(text), ParseJson(text).status()) << text;
  }
}

TEST(JsonTest, DepthIsLimited) {
  EXPECT_TRUE(ParseJson(std::string(128, '[') + std::string(128, ']')).ok());
  EXPECT_FALSE(ParseJson(std::string(1'000'000, '[')).ok());
}

TEST(JsonTest, ManyMembersTakeNoQuadraticTime) {
  std::string text = "{\"k\":0";
  for (int i = 0; i < 200'000; ++i) text += ",\"k" + std::to_string(i) + "\":0";
  const auto value = ParseJson(text + "}");
  ASSERT_TRUE(value.ok());
  EXPECT_EQ(value->members().size(), 200'001u);
}

TEST(JsonTest, FindsMembers) {
  const auto value = ParseJson(R"({"a":{"b":"c"}})");
  ASSERT_NE(value->Find("a"), nullptr);
  EXPECT_EQ(value->Find("a")->Find("b")->string(), "c");
  EXPECT_EQ(value->Find("b"), nullptr);
  EXPECT_EQ(JsonValue().Find("a"), nullptr);
}

}  // namespace
}  // namespace fulgur::text

#include "server/request_fields.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "server/api_error.h"

namespace fulgur::server {
namespace {

RequestFields MustParse(const std::string& body) {
  auto fields = RequestFields::Parse(body);
  EXPECT_TRUE(fields.ok()) << fields.status() << " for " << body;
  return *std::move(fields);
}

TEST(RequestFieldsTest, KeepsTheTextOfEveryKindOfValue) {
  RequestFields fields = MustParse(
      R"( { "a" : {"x": [1, {"y": "}"}] } , "b":[ ], "c" : 1.50 , "d":"\u00e9\"", "e":null,
          "f":true, "g": {"z":{}}  } )");
  EXPECT_EQ(*fields.Raw("a"), R"({"x": [1, {"y": "}"}] })");
  EXPECT_EQ(*fields.Raw("b"), "[ ]");
  EXPECT_EQ(*fields.Raw("c"), "1.50");
  EXPECT_EQ(*fields.Raw("d"), R"("\u00e9\"")");
  EXPECT_FALSE(fields.Has("e"));
  EXPECT_EQ(*fields.Raw("f"), "true");
  EXPECT_EQ(*fields.Raw("g"), R"({"z":{}})");
  EXPECT_FALSE(fields.Has("absent"));
}

TEST(RequestFieldsTest, LastOfRepeatedKeysWins) {
  RequestFields fields = MustParse(R"({"n": 1, "n": 2})");
  int64_t n = 0;
  ASSERT_TRUE(fields.Read("n", &n).ok());
  EXPECT_EQ(n, 2);
}

TEST(RequestFieldsTest, EscapedKeysAreRead) { EXPECT_TRUE(MustParse(R"({"\u006e": 1})").Has("n")); }

TEST(RequestFieldsTest, RefusesWhatIsNoJsonObject) {
  const std::string deep_list(200, '[');
  std::string deep = R"({"a":)" + deep_list + std::string(200, ']') + "}";
  std::string very_deep = R"({"a":)" + std::string(2'000'000, '[');
  for (const std::string& body : std::vector<std::string>{
           "",
           " ",
           "null",
           "3",
           "\"text\"",
           "[1]",
           "{",
           "}",
           "{}x",
           "{} {}",
           R"({"a")",
           R"({"a":)",
           R"({"a":1)",
           R"({"a":1,})",
           R"({"a":[1,]})",
           R"({"a":[1 2]})",
           R"({"a":tru})",
           R"({"a":nul})",
           R"({"a":nulll})",
           R"({"a":NaN})",
           R"({"a":Infinity})",
           R"({"a":-})",
           R"({"a":01})",
           R"({"a":1.})",
           R"({"a":1e999})",
           R"({"a":'x'})",
           R"({a:1})",
           R"({1:1})",
           "{\"a\":\"\x01\"}",
           "{\"a\":\"\xff\"}",
           "{\"a\":\"\xc3\"}",
           "{\"\xed\xa0\x80\":1}",
           R"({"a":"\ud800"})",
           R"({"a":"\udc00x"})",
           R"({"a":"\x"})",
           R"({"a":"unterminated})",
           R"({"unknown":{"deep":[1,{"b":fals}]}})",
           deep,
           very_deep,
       }) {
    auto fields = RequestFields::Parse(body);
    EXPECT_FALSE(fields.ok()) << body.substr(0, 100);
    if (fields.ok()) continue;
    EXPECT_EQ(HttpStatusOf(fields.status()), 400);
    EXPECT_THAT(ErrorBody(fields.status()), testing::HasSubstr(R"("type":"Bad Request")"));
  }
}

TEST(RequestFieldsTest, TakesBigNumbersThatNobodyReads) {
  EXPECT_TRUE(
      RequestFields::Parse(R"({"a": 123456789012345678901234567890, "b": -0, "c": 1e-999})").ok());
}

TEST(RequestFieldsTest, ConvertsLeniently) {
  RequestFields fields = MustParse(
      R"({"i": 16, "f": 16.0, "t": "16", "b": true, "s": "true", "z": 0, "d": "0.5", "h": 16.5,
          "l": [1], "o": {}, "x": "x", "big": 99999999999999999999, "e": 1e3, "inf": "inf"})");
  auto integer = [&](const char* name) {
    int64_t value = -1;
    return fields.Read(name, &value).ok() ? value : -2;
  };
  EXPECT_EQ(integer("i"), 16);
  EXPECT_EQ(integer("f"), 16);
  EXPECT_EQ(integer("t"), 16);
  EXPECT_EQ(integer("b"), 1);
  EXPECT_EQ(integer("e"), 1000);
  EXPECT_EQ(integer("absent"), -1);
  for (const char* bad : {"h", "l", "o", "x", "big", "inf"}) EXPECT_EQ(integer(bad), -2) << bad;

  auto number = [&](const char* name) {
    float value = -1;
    return fields.Read(name, &value).ok() ? value : -2.0F;
  };
  EXPECT_EQ(number("d"), 0.5F);
  EXPECT_EQ(number("h"), 16.5F);
  EXPECT_EQ(number("b"), 1.0F);
  for (const char* bad : {"l", "o", "x", "inf"}) EXPECT_EQ(number(bad), -2.0F) << bad;

  auto flag = [&](const char* name) {
    bool value = false;
    return fields.Read(name, &value).ok() ? static_cast<int>(value) : -2;
  };
  EXPECT_EQ(flag("b"), 1);
  EXPECT_EQ(flag("s"), 1);
  EXPECT_EQ(flag("z"), 0);
  for (const char* bad : {"i", "l", "o", "x"}) EXPECT_EQ(flag(bad), -2) << bad;

  std::string text;
  EXPECT_TRUE(fields.Read("x", &text).ok());
  EXPECT_FALSE(fields.Read("i", &text).ok());
  std::vector<std::string> texts;
  EXPECT_TRUE(fields.ReadTextOrList("x", &texts).ok());
  EXPECT_THAT(texts, testing::ElementsAre("x"));
  EXPECT_FALSE(fields.ReadTextOrList("l", &texts).ok());
}

TEST(RequestFieldsTest, ErrorsNameFieldAndValue) {
  RequestFields fields = MustParse(R"({"options": {"n": "many"}})");
  auto options = fields.Object("options");
  ASSERT_TRUE(options.ok());
  int64_t n = 0;
  absl::Status status = options->Read("n", &n);
  EXPECT_EQ(std::string(status.message()),
            "options.n: Input should be a valid number, got \"many\".");
  EXPECT_THAT(ErrorBody(status), testing::HasSubstr(R"("param":"options.n")"));
  EXPECT_FALSE(MustParse(R"({"options": 3})").Object("options").ok());
  EXPECT_TRUE(MustParse(R"({"options": null})").Object("options").ok());
}

TEST(RequestFieldsTest, ReadsIdLists) {
  std::vector<int32_t> ids;
  EXPECT_TRUE(ParseIdList("[1, 2.0, 2147483647]", "tokens", &ids).ok());
  EXPECT_THAT(ids, testing::ElementsAre(1, 2, 2147483647));
  for (const char* bad : {"[-1]", "[2147483648]", "[1.5]", "[\"1\"]", "[[1]]", "[1,", "{}", "3",
                          "[1e30]", "[null]"}) {
    EXPECT_FALSE(ParseIdList(bad, "tokens", &ids).ok()) << bad;
  }
  auto items = SplitList(R"([[1, 2] , [3],"x",{"a":[]}])", "prompt");
  ASSERT_TRUE(items.ok());
  EXPECT_THAT(*items, testing::ElementsAre("[1, 2]", "[3]", "\"x\"", R"({"a":[]})"));
}

TEST(RequestFieldsTest, ReadsMapsOfTokenIds) {
  RequestFields fields = MustParse(R"({"bias": {"5": -200, "7": "1.5"}, "bad": {"x": 1}})");
  std::vector<std::pair<int64_t, float>> bias;
  ASSERT_TRUE(fields.ReadIdMap("bias", &bias).ok());
  EXPECT_THAT(bias, testing::ElementsAre(testing::Pair(5, -100.0F), testing::Pair(7, 1.5F)));
  EXPECT_FALSE(fields.ReadIdMap("bad", &bias).ok());
}

}  // namespace
}  // namespace fulgur::server

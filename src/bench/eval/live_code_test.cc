#include "bench/eval/live_code.h"

#include "bench/eval/grade.h"
#include "bench/eval/sandbox.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace fulgur::bench {
namespace {

using Json = nlohmann::json;
using testing::HasSubstr;

Json Row(const Json& tests, const char* method) {
  return {{"question_id", "1873_A"},
          {"difficulty", "easy"},
          {"question_content", "Add two numbers."},
          {"starter_code", std::string(method).empty() ? "" : "class Solution:"},
          {"metadata", Json({{"func_name", method}}).dump()},
          {"public_test_cases", tests.dump()},
          {"private_test_cases", "[]"}};
}

Json Case(const char* input, const char* output) { return {{"input", input}, {"output", output}}; }

TEST(LiveCodeTest, ReadsAPublishedRow) {
  const auto item = LiveCodeRow(Row(Json::array({Case("1 2", "3")}), "add"));
  ASSERT_TRUE(item.has_value());
  EXPECT_EQ(item->id, "1873_A");
  EXPECT_EQ(item->subset, "easy");
  EXPECT_EQ(item->entry_point, "add");
  EXPECT_THAT(item->question, HasSubstr("class Solution:"));
}

TEST(LiveCodeTest, ARowWithoutTestsIsNone) {
  EXPECT_FALSE(LiveCodeRow(Row(Json::array(), "")).has_value());
  EXPECT_FALSE(LiveCodeRow(Row(Json::array({{{"input", 3}}}), "")).has_value());
  EXPECT_FALSE(LiveCodeRow({{"question_content", "q"}}).has_value());
}

class LiveCodeRunTest : public testing::Test {
 protected:
  void SetUp() override {
    const auto sandbox = Sandbox::Create({});
    if (!sandbox.ok()) GTEST_SKIP() << sandbox.status();
    sandbox_.emplace(*sandbox);
  }
  bool Passes(const Json& row, const std::string& code) {
    return *sandbox_->RunProgram(TestProgram(*LiveCodeRow(row), code));
  }
  std::optional<Sandbox> sandbox_;
};

TEST_F(LiveCodeRunTest, ProgramsReadAndPrint) {
  const Json row = Row(Json::array({Case("2\n1 2\n3 4", "3\n7\n"), Case("1\n0.5 0.5", "1")}), "");
  const std::string sums =
      "import sys\ndata = sys.stdin.buffer.read().split()\n"
      "for i in range(int(data[0])):\n    x, y = data[1 + 2 * i], data[2 + 2 * i]\n"
      "    print(float(x) + float(y))\n";
  EXPECT_TRUE(Passes(row, sums));
  EXPECT_TRUE(Passes(row,
                     "for _ in range(int(input())):\n"
                     "    print(sum(map(float, input().split())))\nexit()\n"));
  EXPECT_FALSE(Passes(row, "print(3)\nprint('7ä\"\\\\')\n"));
  EXPECT_FALSE(Passes(row, "raise ValueError\n"));
}

TEST_F(LiveCodeRunTest, MethodsAreCalled) {
  const Json row = Row(Json::array({Case("[1, 2]\n3", "[4, 5]")}), "shift");
  EXPECT_TRUE(Passes(row,
                     "class Solution:\n    def shift(self, a: List[int], b):\n"
                     "        return [x + b for x in a]\n"));
  EXPECT_TRUE(Passes(row, "def shift(a, b):\n    return tuple(x + b for x in a)\n"));
  EXPECT_FALSE(Passes(row, "class Solution:\n    def shift(self, a, b):\n        return a\n"));
}

// base64(zlib(pickle('[{"input": "1 2", "output": "3"}]'))), as the data set packs them.
TEST_F(LiveCodeRunTest, PackedTestsCountToo) {
  Json row = Row(Json::array(), "");
  row["private_test_cases"] = "eJxrYJmqygABPYrR1UqZeQWlJUpWCkqGCkZKOgpK+aUlUAFjpdrYKXoACxsMBQ==";
  EXPECT_TRUE(Passes(row, "print(sum(map(int, input().split())))\n"));
  EXPECT_FALSE(Passes(row, "print(4)\n"));
}

}  // namespace
}  // namespace fulgur::bench

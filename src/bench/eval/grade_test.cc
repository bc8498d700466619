#include "bench/eval/grade.h"

#include <filesystem>
#include <fstream>

#include "bench/eval/math_text.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace fulgur::bench {
namespace {

using testing::HasSubstr;

TEST(SameMathTest, OneValueInManySpellings) {
  for (const auto& [a, b] :
       std::vector<std::pair<std::string, std::string>>{{"\\frac{1}{2}", "0.5"},
                                                        {"\\dfrac12", "\\frac{1}{2}"},
                                                        {"x = 3", "3"},
                                                        {"1,234", "1234"},
                                                        {"50\\%", "50"},
                                                        {"90^\\circ", "90"},
                                                        {"\\left(1, 2\\right)", "(1,2)"},
                                                        {"7 \\text{ cm}", "7cm"},
                                                        {"-\\frac{3}{4}", "-0.75"},
                                                        {"3/4", "0.75"},
                                                        {"2.50", "2.5"}}) {
    EXPECT_TRUE(SameMath(a, b)) << a << " and " << b;
  }
  EXPECT_FALSE(SameMath("\\frac{1}{3}", "0.33"));
  EXPECT_FALSE(SameMath("(1,2)", "(2,1)"));
  EXPECT_FALSE(SameMath("1/0", "1"));
}

TEST(GradeAnswerTest, EachKind) {
  EXPECT_TRUE(GradeAnswer(AnswerKind::kNumber, {.gold = "18"}, "answer: 18.0").correct);
  EXPECT_TRUE(GradeAnswer(AnswerKind::kLetter, {.gold = "B"}, "Answer: B").correct);
  EXPECT_TRUE(GradeAnswer(AnswerKind::kMath, {.gold = "\\frac12"}, "\\boxed{0.5}").correct);
  EXPECT_TRUE(GradeAnswer(AnswerKind::kText, {.gold = "blue"}, " blue\n").correct);
  EXPECT_TRUE(GradeAnswer(AnswerKind::kText, {.gold = "blue"}, "**\"blue\".**").correct);
  EXPECT_FALSE(GradeAnswer(AnswerKind::kText, {.gold = "blue"}, "dark blue").correct);
  EXPECT_FALSE(GradeAnswer(AnswerKind::kNumber, {.gold = "18"}, "answer: 17").correct);
  EXPECT_FALSE(GradeAnswer(AnswerKind::kNumber, {.gold = "18"}, "<think>answer: 18").parsed);
}

class EvalDataTest : public testing::Test {
 protected:
  std::string Write(const std::string& name, const std::string& text) {
    const std::string path = (std::filesystem::path(testing::TempDir()) / name).string();
    std::ofstream(path, std::ios::binary) << text;
    return path;
  }
};

TEST_F(EvalDataTest, ReadsPublishedForms) {
  const auto gsm8k = ReadEvalData(
      "gsm8k", Write("g.jsonl", "{\"question\":\"q\",\"answer\":\"so\\n#### 1,200\"}\nnot json\n"));
  ASSERT_TRUE(gsm8k.ok()) << gsm8k.status();
  EXPECT_EQ(gsm8k->items[0].gold, "1200");
  EXPECT_EQ(gsm8k->skipped_rows, 1);
  EXPECT_THAT(gsm8k->first_problem, HasSubstr("row 2"));

  const auto mmlu = ReadEvalData("mmlu", Write("m.csv", "\"a, b?\",1,2,3,4,C\n"));
  ASSERT_TRUE(mmlu.ok()) << mmlu.status();
  EXPECT_EQ(mmlu->items[0].question, "a, b?");
  EXPECT_EQ(mmlu->items[0].options.size(), 4);

  const auto human = ReadEvalData(
      "humaneval",
      Write("h.jsonl", R"({"task_id":"T/0","prompt":"def f():\n","test":"def check(c): pass",)"
                       R"("entry_point":"f"})"));
  ASSERT_TRUE(human.ok()) << human.status();
  EXPECT_THAT(TestProgram(human->items[0], "    return 1\n"),
              testing::StartsWith("def f():\n    return 1\n"));
}

TEST_F(EvalDataTest, TheRightLetterOfGpqaMoves) {
  const std::string path =
      Write("gpqa.csv",
            "Question,Correct Answer,Incorrect Answer 1,Incorrect Answer 2,Incorrect Answer 3\n"
            "q0,r,a,b,c\nq1,r,a,b,c\nq2,r,a,b,c\n");
  for (int64_t rotation : {0, 1}) {
    const auto data = ReadEvalData("gpqa", path, {.rotation = rotation});
    ASSERT_TRUE(data.ok()) << data.status();
    std::string letters;
    for (const EvalItem& item : data->items) {
      letters += item.gold;
      EXPECT_EQ(item.options[static_cast<size_t>(item.gold[0] - 'A')], "r");
    }
    EXPECT_EQ(letters, rotation == 0 ? "ADC" : "DCB");
  }
}

TEST_F(EvalDataTest, MistakesAreNamed) {
  EXPECT_THAT(ReadEvalData("gsm9k", "x").status().message(), HasSubstr("there are gsm8k"));
  EXPECT_THAT(ReadEvalData("gsm8k", "").status().message(), HasSubstr("needs --data FILE"));
  EXPECT_THAT(ReadEvalData("gsm8k", Write("e.jsonl", "{}\n")).status().message(),
              HasSubstr("holds no question of gsm8k"));
  EXPECT_THAT(ReadEvalData("gpqa", Write("e.csv", "a,b\n")).status().message(),
              HasSubstr("no column 'Question'"));
}

TEST_F(EvalDataTest, OwnSetsAreWellFormed) {
  const auto choices = ReadEvalData("selftest-mc", "");
  ASSERT_TRUE(choices.ok());
  EXPECT_EQ(choices->items.size(), 40);
  std::map<std::string, int> letters;
  for (const EvalItem& item : choices->items) {
    ++letters[item.gold];
    const auto right = static_cast<size_t>(item.gold[0] - 'A');
    for (size_t i = 0; i < item.options.size(); ++i) {
      if (i != right) {
        EXPECT_NE(item.options[i], item.options[right]) << item.question;
      }
    }
  }
  EXPECT_EQ(letters, (std::map<std::string, int>{{"A", 10}, {"B", 10}, {"C", 10}, {"D", 10}}));
  const auto sums = ReadEvalData("selftest-math", "");
  ASSERT_TRUE(sums.ok());
  for (const EvalItem& item : sums->items) EXPECT_GE(std::stoi(item.gold), 0);
}

TEST_F(EvalDataTest, NeedlesLieWhereTheySay) {
  const auto data = ReadEvalData("needle", "", {.needle = {.words = {200, 800}, .depths = 3}});
  ASSERT_TRUE(data.ok()) << data.status();
  ASSERT_EQ(data->items.size(), 12);
  EXPECT_EQ(data->items[0].subset, "    200 words, depth   0 %");
  EXPECT_EQ(data->items[11].subset, "    800 words, depth 100 %");
  for (const EvalItem& item : data->items) {
    const size_t first = item.question.find(item.gold);
    ASSERT_NE(first, std::string::npos);
    EXPECT_EQ(item.question.rfind(item.gold), first);
    const double depth = std::stod(item.subset.substr(item.subset.find("depth") + 5)) / 100;
    EXPECT_NEAR(static_cast<double>(first) / static_cast<double>(item.question.size()), depth, 0.12)
        << item.id;
  }
  const auto again = ReadEvalData("needle", "", {.needle = {.words = {200, 800}, .depths = 3}});
  EXPECT_EQ(again->items[7].question, data->items[7].question);
}

}  // namespace
}  // namespace fulgur::bench

#include "bench/eval/extract.h"

#include "gtest/gtest.h"

namespace fulgur::bench {
namespace {

std::string Number(std::string_view text) {
  const auto found = ExtractNumber(text);
  return found ? found->answer + "/" + std::to_string(found->tier) : "none";
}

std::string Letter(std::string_view text) {
  const auto found = ExtractLetter(text);
  return found ? found->answer + "/" + std::to_string(found->tier) : "none";
}

std::string Integer(std::string_view text) {
  const auto found = ExtractInteger(text);
  return found ? found->answer + "/" + std::to_string(found->tier) : "none";
}

TEST(VisibleAnswerTest, LeavesThinkingOut) {
  EXPECT_EQ(VisibleAnswer("<think>maybe 3</think>\n4"), "\n4");
  EXPECT_EQ(VisibleAnswer("no start</think>5"), "5");
  EXPECT_EQ(VisibleAnswer("plain"), "plain");
  EXPECT_EQ(VisibleAnswer("<think>cut off, answer: 7"), std::nullopt);
}

TEST(ExtractNumberTest, TakesTheSurestRule) {
  EXPECT_EQ(Number("3 apples\nanswer: 1,234"), "1234/1");
  EXPECT_EQ(Number("Answer：$12.50"), "12.50/1");
  EXPECT_EQ(Number("**Answer: **42**"), "42/1");
  EXPECT_EQ(Number("answer: 1\nNo: answer: -7."), "-7/1");
  EXPECT_EQ(Number("so \\boxed{1,000} it is"), "1000/2");
  EXPECT_EQ(Number("first 3, then 4.5 in all"), "4.5/3");
  EXPECT_EQ(Number("It is 8.\n\nQuestion: what is 2+2?"), "8/3");
  EXPECT_EQ(Number("no digits"), "none");
  EXPECT_EQ(Number(""), "none");
}

TEST(ExtractLetterTest, TakesTheSurestRule) {
  EXPECT_EQ(Letter("The answer is (C)."), "C/1");
  EXPECT_EQ(Letter("Answer: A\n...\nAnswer: B"), "B/1");
  EXPECT_EQ(Letter("答案 Answer：**D**"), "D/1");
  EXPECT_EQ(Letter("\\boxed{\\text{B}}"), "B/2");
  EXPECT_EQ(Letter("I thought of A first.\n(E)."), "E/3");
  EXPECT_EQ(Letter("It must be B because A fails D"), "D/4");
  EXPECT_EQ(Letter("The answer is Always"), "none");
  EXPECT_EQ(Letter("nothing here"), "none");
}

TEST(ExtractIntegerTest, BoxedThenNearAnswerThenLast) {
  EXPECT_EQ(Integer("x=3, so \\boxed{204}."), "204/1");
  EXPECT_EQ(Integer("The answer, after all, is 116"), "116/2");
  EXPECT_EQ(Integer("1 2 3"), "3/3");
}

TEST(ExtractBoxedTest, BracesMayNest) {
  EXPECT_EQ(ExtractBoxed("a \\boxed{\\frac{1}{2}} b")->answer, "\\frac{1}{2}");
  EXPECT_FALSE(ExtractBoxed("\\boxed{never closed"));
  EXPECT_FALSE(ExtractBoxed("none"));
}

TEST(ExtractCodeTest, PrefersTheBlockWithTheFunction) {
  const std::string text =
      "Run:\n```\npip install x and a lot of other words to be the longest block of all\n```\n"
      "```python\ndef add(a, b):\n    return a + b\n```\n";
  EXPECT_EQ(ExtractCode(text, "add").answer, "def add(a, b):\n    return a + b\n");
  EXPECT_EQ(ExtractCode(text, "sub").tier, 2);
  EXPECT_EQ(ExtractCode("def f(): pass", "f").tier, 3);
  EXPECT_EQ(ExtractCode("```python\ndef f():\n  return 1", "f").answer, "def f():\n  return 1");
}

TEST(ExtractTest, LongTextsAreNoProblem) {
  const std::string text(4 << 20, 'A');
  EXPECT_EQ(Letter(text), "none");
  EXPECT_EQ(Number(text + " answer: 5"), "5/1");
}

}  // namespace
}  // namespace fulgur::bench

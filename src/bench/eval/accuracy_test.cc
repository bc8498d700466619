#include "bench/eval/accuracy.h"

#include <fstream>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace fulgur::bench {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

EvalData TwoQuestions() {
  EvalData data{.name = "gsm8k", .kind = AnswerKind::kNumber};
  data.items = {{.id = "a", .subset = "easy", .gold = "1"},
                {.id = "b", .subset = "hard", .gold = "2"}};
  return data;
}

GradedAnswer Said(const EvalData& data, size_t item, int64_t sample, const std::string& text) {
  Answer answer{.item = item, .sample = sample, .text = text, .finish_reason = "stop"};
  return {answer, GradeAnswer(data.kind, data.items[item], text)};
}

TEST(AccuracyTest, MeansOverSamplesThenOverItems) {
  const EvalData data = TwoQuestions();
  const Accuracy accuracy =
      Summarise(data, {Said(data, 0, 0, "answer: 1"), Said(data, 0, 1, "answer: 1"),
                       Said(data, 0, 2, "answer: 5"), Said(data, 1, 0, "answer: 3"),
                       Said(data, 1, 1, "answer: 2"), Said(data, 1, 2, "answer: 3")});
  EXPECT_NEAR(accuracy.score, 0.5, 1e-12);
  EXPECT_NEAR(*accuracy.majority, 0.5, 1e-12);
  EXPECT_EQ(accuracy.samples, 3);
  ASSERT_EQ(accuracy.pass_at.size(), 3);
  EXPECT_NEAR(accuracy.pass_at.at(1), 0.5, 1e-12);
  EXPECT_NEAR(accuracy.pass_at.at(2), 5.0 / 6, 1e-12);
  EXPECT_NEAR(accuracy.pass_at.at(3), 1.0, 1e-12);
  EXPECT_EQ(accuracy.subsets.at("easy").right, 2);
  EXPECT_TRUE(accuracy.valid());
}

TEST(AccuracyTest, PassAtKNeedsThatManyAnswersOfEveryItem) {
  const EvalData data = TwoQuestions();
  const Accuracy accuracy =
      Summarise(data, {Said(data, 0, 0, "answer: 1"), Said(data, 0, 1, "answer: 5"),
                       Said(data, 1, 0, "answer: 2")});
  ASSERT_EQ(accuracy.pass_at.size(), 1);
  EXPECT_NEAR(accuracy.pass_at.at(1), 0.75, 1e-12);
}

TEST(AccuracyTest, SaysWhyAScoreIsNotValid) {
  const EvalData data = TwoQuestions();
  GradedAnswer cut = Said(data, 0, 0, "<think>hm");
  cut.answer.finish_reason = "length";
  GradedAnswer failed = Said(data, 1, 0, "");
  failed.answer.error = "status 500: no";
  const Accuracy accuracy = Summarise(data, {cut, failed});
  EXPECT_EQ(accuracy.truncated, 1);
  EXPECT_EQ(accuracy.unparsed, 1);
  EXPECT_EQ(accuracy.failed, 1);
  EXPECT_THAT(accuracy.warnings,
              ElementsAre(HasSubstr("1 of 2 requests failed"), HasSubstr("raise --max-tokens"),
                          HasSubstr("no answer was found in 1 of 2 texts")));
}

TEST(AccuracyFilesTest, AnswersComeBackAndAreGradedAgain) {
  const std::filesystem::path folder = std::filesystem::path(testing::TempDir()) / "accuracy";
  const EvalData data = TwoQuestions();
  const std::vector<GradedAnswer> answers = {Said(data, 0, 0, "answer: 1"),
                                             Said(data, 1, 0, "answer: 7")};
  ASSERT_TRUE(WriteAccuracy(folder, {}, data, Summarise(data, answers), answers).ok());
  const auto stored = ReadAnswers(folder);
  ASSERT_TRUE(stored.ok()) << stored.status();
  EXPECT_EQ(stored->dataset, "gsm8k");
  const std::vector<Answer> again = AnswersOf(*stored, data);
  ASSERT_EQ(again.size(), 2);
  EXPECT_EQ(again[1].text, "answer: 7");
  const auto same = CompareAnswers(*stored, *stored);
  ASSERT_TRUE(same.ok());
  EXPECT_EQ(same->items, 2);
  EXPECT_EQ(same->equal_texts, 1.0);
  EXPECT_EQ(same->p, 1.0);
}

TEST(AccuracyFilesTest, DamagedFilesAreNamed) {
  const std::filesystem::path folder = std::filesystem::path(testing::TempDir()) / "damaged";
  std::filesystem::create_directories(folder);
  std::ofstream(folder / "accuracy.json") << "{\"format\":\"other\"}";
  EXPECT_THAT(ReadAnswers(folder).status().message(), HasSubstr("no result of fulgur eval"));
  std::ofstream(folder / "accuracy.json") << "{\"format\":\"fulgur-accuracy/1\"}";
  std::ofstream(folder / "items.jsonl") << "{\"id\":\"a\"}\n{\"id\":";
  EXPECT_THAT(ReadAnswers(folder).status().message(), HasSubstr("line 2"));
}

}  // namespace
}  // namespace fulgur::bench

#include "sched/cost_model.h"

#include <gtest/gtest.h>

#include <random>

namespace fulgur::sched {
namespace {

TEST(CostCurve, IsStraightBetweenPointsAndBehindThem) {
  const CostCurve curve({{1, 10}, {4, 16}, {8, 32}});
  EXPECT_DOUBLE_EQ(curve.At(0), 10);
  EXPECT_DOUBLE_EQ(curve.At(1), 10);
  EXPECT_DOUBLE_EQ(curve.At(2), 12);
  EXPECT_DOUBLE_EQ(curve.At(6), 24);
  EXPECT_DOUBLE_EQ(curve.At(10), 40);
  EXPECT_DOUBLE_EQ(CostCurve({{3, 7}}).At(100), 7);
  EXPECT_DOUBLE_EQ(CostCurve({}).At(100), 0);
}

TEST(CostCurve, TakesFallingTimesForNoise) {
  const CostCurve curve({{1, 10}, {2, 9}, {3, 12}});
  EXPECT_DOUBLE_EQ(curve.At(2), 10);
}

TEST(CostCurve, FillsWhatAtSays) {
  std::mt19937 rng(1);
  std::vector<CostPoint> points;
  for (double size = 1; size < 60; size += 1 + static_cast<double>(rng() % 9)) {
    points.push_back({size, 1 + static_cast<double>(rng() % 100)});
  }
  const CostCurve curve(points);
  for (int64_t first = 1; first < 70; first += 3) {
    std::vector<double> filled(40);
    curve.Fill(first, filled);
    for (size_t i = 0; i < filled.size(); ++i) {
      EXPECT_NEAR(filled[i], curve.At(static_cast<double>(first) + static_cast<double>(i)), 1e-9);
    }
  }
}

CostTable Table() {
  return {.forward = {{1, 10}, {2, 12}, {4, 16}, {8, 24}, {16, 40}},
          .ms_per_context_token = 0.001,
          .draft_one = {{1, 1}, {8, 2}},
          .draft_full = {{1, 3}, {8, 10}},
          .max_drafts = 5};
}

TEST(CostModel, AddsContextAndWidth) {
  const CostModel model(Table());
  EXPECT_DOUBLE_EQ(model.Forward({.rows = 2, .context = 1000}), 13);
  EXPECT_DOUBLE_EQ(model.Draft(0, 5), 0);
  EXPECT_DOUBLE_EQ(model.Draft(1, 1), 1);
  EXPECT_DOUBLE_EQ(model.Draft(1, 3), 2);
  EXPECT_DOUBLE_EQ(model.Draft(8, 5), 10);
}

TEST(CostModel, AnEmptyTablePredictsNothing) {
  CostModel model(CostTable{});
  model.ObserveForward({.rows = 5, .context = 100}, 3.0);
  EXPECT_EQ(model.Forward({.rows = 5, .context = 100}), 0.0);
}

TEST(CostModel, FollowsAMachineThatBecomesSlower) {
  CostModel model(Table());
  for (int i = 0; i < 200; ++i) model.ObserveForward({.rows = 8, .context = 0}, 72);
  EXPECT_NEAR(model.Forward({.rows = 8, .context = 0}), 72, 1);
  // Sizes that were not visited follow, since the machine is the same.
  EXPECT_GT(model.Forward({.rows = 1, .context = 0}), 15);
}

TEST(CostModel, LearnsASlowSize) {
  CostModel model(Table());
  const CostModel truth(Table());
  for (int i = 0; i < 400; ++i) {
    for (const int64_t rows : {2, 4, 8, 16}) {
      model.ObserveForward({.rows = rows, .context = 0},
                           truth.Forward({.rows = rows, .context = 0}) * (rows == 4 ? 1.3 : 1.0));
    }
  }
  EXPECT_NEAR(model.Forward({.rows = 4, .context = 0}) / model.Forward({.rows = 8, .context = 0}),
              1.3 * 16 / 24, 0.02);
  EXPECT_NEAR(model.Forward({.rows = 2, .context = 0}), 12, 0.5);
}

TEST(CostModel, LongPromptsTeachNothing) {
  CostModel model(Table());
  for (int i = 0; i < 100; ++i) model.ObserveForward({.rows = 2000, .context = 0}, 1.0);
  EXPECT_DOUBLE_EQ(model.Forward({.rows = 8, .context = 0}), 24);
}

TEST(CostModel, OneBadStepChangesLittle) {
  CostModel model(Table());
  for (int i = 0; i < 100; ++i) model.ObserveForward({.rows = 8, .context = 0}, 24);
  model.ObserveForward({.rows = 8, .context = 0}, 24000);
  EXPECT_LT(model.Forward({.rows = 8, .context = 0}), 24 * 1.2);
}

TEST(CostModel, LearnsThePriceOfContext) {
  CostModel model(Table());
  std::mt19937 rng(2);
  for (int i = 0; i < 3000; ++i) {
    const int64_t rows = 1 + static_cast<int64_t>(rng() % 16);
    const int64_t context = static_cast<int64_t>(rng() % 100000);
    const CostModel truth(Table());
    model.ObserveForward(
        {.rows = rows, .context = context},
        truth.Forward({.rows = rows, .context = 0}) + 0.002 * static_cast<double>(context));
  }
  EXPECT_NEAR(model.ContextTokenMs(), 0.002, 0.0004);
}

TEST(CostModel, LearnsDraftingBySizeAndWidth) {
  CostModel model(Table());
  for (int i = 0; i < 300; ++i) {
    model.ObserveDraft(4, 1, 1.5);
    model.ObserveDraft(4, 5, 9);
  }
  EXPECT_NEAR(model.Draft(4, 1), 1.5, 0.05);
  EXPECT_NEAR(model.Draft(4, 5), 9, 0.3);
}

}  // namespace
}  // namespace fulgur::sched

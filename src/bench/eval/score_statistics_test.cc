#include "bench/eval/score_statistics.h"

#include <vector>

#include "gtest/gtest.h"

namespace fulgur::bench {
namespace {

// Reference values: scipy 1.17 (binomtest and its Wilson interval) and the estimator of Chen et al.
TEST(ScoreStatisticsTest, EqualReferenceValues) {
  EXPECT_NEAR(WilsonInterval(27, 30).low, 0.743789174208, 1e-9);
  EXPECT_NEAR(WilsonInterval(27, 30).high, 0.965400111253, 1e-9);
  EXPECT_NEAR(WilsonInterval(0, 10).high, 0.277532799863, 1e-9);
  EXPECT_DOUBLE_EQ(WilsonInterval(0, 0).high, 1.0);
  EXPECT_NEAR(McNemarP({.only_first = 9, .only_second = 1}), 0.021484375, 1e-12);
  EXPECT_NEAR(McNemarP({.only_first = 4, .only_second = 4}), 1.0, 1e-12);
  EXPECT_NEAR(McNemarP({}), 1.0, 1e-12);
  EXPECT_NEAR(PassAtK(10, 3, 1), 0.3, 1e-12);
  EXPECT_NEAR(PassAtK(10, 3, 5), 0.916666666667, 1e-9);
  EXPECT_DOUBLE_EQ(PassAtK(5, 4, 2), 1.0);
}

TEST(ScoreStatisticsTest, StandardErrorOfABinaryScore) {
  const std::vector<double> answers = {1, 1, 1, 0};
  EXPECT_NEAR(StandardError(answers), 0.25, 1e-12);
  EXPECT_EQ(StandardError(std::vector<double>{1.0}), 0.0);
}

TEST(ScoreStatisticsTest, TheBootstrapFindsADifference) {
  std::vector<double> first(200, 1.0);
  std::vector<double> second(200, 1.0);
  for (size_t i = 0; i < 40; ++i) second[i] = 0.0;
  const Interval interval = BootstrapDifference(first, second, 1);
  EXPECT_GT(interval.low, 0.13);
  EXPECT_LT(interval.high, 0.27);
  EXPECT_EQ(BootstrapDifference(first, first, 1).high, 0.0);
}

}  // namespace
}  // namespace fulgur::bench

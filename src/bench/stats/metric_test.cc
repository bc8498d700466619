#include "bench/stats/metric.h"

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include "gtest/gtest.h"

namespace fulgur::bench {
namespace {

TEST(MetricTest, PercentilesInterpolateLinearly) {
  const MetricBlock block = Summarize({400, 260, 350, 295}, "ms");
  EXPECT_DOUBLE_EQ(*block.avg, 326.25);
  EXPECT_NEAR(block.percentiles.at(1), 261.05, 1e-9);
  EXPECT_NEAR(block.percentiles.at(50), 322.5, 1e-9);
  EXPECT_NEAR(block.percentiles.at(99), 398.5, 1e-9);
  EXPECT_NEAR(*block.std, 53.31217, 1e-5);
  EXPECT_EQ(*block.count, 4);
  EXPECT_DOUBLE_EQ(*block.sum, 1305.0);
}

TEST(MetricTest, NothingMeasuredStaysAbsent) {
  const MetricBlock block = Summarize({}, "ms");
  EXPECT_FALSE(block.avg.has_value());
  EXPECT_FALSE(block.count.has_value());
  EXPECT_TRUE(block.percentiles.empty());
}

TEST(MetricTest, SmallTermsSurviveLargeOnes) {
  const MetricBlock block = Summarize({1e16, 1.0, -1e16}, "ms");
  EXPECT_DOUBLE_EQ(*block.sum, 1.0);
}

std::vector<double> Ranks(int n) {
  std::vector<double> ranks;
  for (int i = 1; i <= n; ++i) ranks.push_back(i);
  return ranks;
}

// Ranks 40 and 61 bound the median of 100 values: Conover, Practical Nonparametric Statistics.
TEST(MetricTest, APercentileLiesBetweenTwoOrderStatistics) {
  const auto median = BoundsOfPercentile(Ranks(100), 50);
  ASSERT_TRUE(median);
  EXPECT_EQ(median->low, 40);
  EXPECT_EQ(median->high, 61);
}

// The largest of n values lies above the 99th percentile with 1 - 0.99^n, which passes 0.975 at
// 368.
TEST(MetricTest, FewValuesDoNotBoundATail) {
  EXPECT_FALSE(BoundsOfPercentile(Ranks(367), 99));
  const auto tail = BoundsOfPercentile(Ranks(368), 99);
  ASSERT_TRUE(tail);
  EXPECT_EQ(tail->high, 368);
  EXPECT_FALSE(BoundsOfPercentile({}, 50));
  EXPECT_FALSE(BoundsOfPercentile(Ranks(5), 50));
  EXPECT_TRUE(BoundsOfPercentile(Ranks(6), 50));
}

TEST(MetricTest, BoundsHoldThePercentileAsOftenAsTheySay) {
  constexpr uint64_t kSeed = 3;
  SCOPED_TRACE(testing::Message() << "seed " << kSeed);
  std::mt19937_64 random(kSeed);
  std::exponential_distribution<double> law(1.0);
  constexpr int kTimes = 2000;
  int held = 0;
  for (int time = 0; time < kTimes; ++time) {
    std::vector<double> values;
    for (int i = 0; i < 120; ++i) values.push_back(law(random));
    std::sort(values.begin(), values.end());
    const PercentileBounds bounds = BoundsOfPercentile(values, 90).value();
    const double truth = -std::log(0.1);
    held += bounds.low <= truth && truth <= bounds.high ? 1 : 0;
  }
  EXPECT_GT(static_cast<double>(held) / kTimes, 0.94);
}

}  // namespace
}  // namespace fulgur::bench

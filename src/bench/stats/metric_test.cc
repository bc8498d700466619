#include "bench/stats/metric.h"

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

}  // namespace
}  // namespace fulgur::bench

#include "sample/order.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <random>

namespace fulgur::sample {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();

std::vector<int32_t> Sorted(std::span<const float> values) {
  std::vector<int32_t> order(values.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
    return values[static_cast<size_t>(a)] > values[static_cast<size_t>(b)];
  });
  return order;
}

// Few distinct values, so that ties are everywhere; some are masked.
std::vector<float> RandomValues(std::mt19937& rng, size_t size, int distinct) {
  std::vector<float> values(size);
  for (float& value : values) {
    const int draw = std::uniform_int_distribution<int>(0, distinct)(rng);
    value = draw == 0 ? -kInf : static_cast<float>(draw) * 0.25F - 3.0F;
  }
  return values;
}

TEST(Order, AgreesWithAStableSort) {
  std::mt19937 rng(20260101);
  for (const size_t size : {1U, 2U, 15U, 16U, 17U, 100U, 1000U}) {
    for (const int distinct : {1, 3, 1000000}) {
      const std::vector<float> values = RandomValues(rng, size, distinct);
      const std::vector<int32_t> expected = Sorted(values);
      EXPECT_EQ(ArgMax(values), expected.front());
      std::vector<int32_t> top;
      for (const int64_t count : {int64_t{0}, int64_t{1}, int64_t{7}, static_cast<int64_t>(size),
                                  static_cast<int64_t>(size) + 5}) {
        TopIndices(values, count, top);
        const auto wanted = std::min<int64_t>(count, static_cast<int64_t>(size));
        EXPECT_EQ(top, std::vector<int32_t>(expected.begin(), expected.begin() + wanted));
      }
      for (size_t rank = 0; rank < size; ++rank) {
        EXPECT_EQ(RankOf(values, expected[rank]), static_cast<int32_t>(rank) + 1);
      }
    }
  }
}

TEST(Order, FindsEveryKindOfBadValue) {
  std::vector<float> values(100, 1.0F);
  EXPECT_FALSE(HasNonFinite(values));
  values[3] = std::numeric_limits<float>::max();
  values[4] = std::numeric_limits<float>::denorm_min();
  EXPECT_FALSE(HasNonFinite(values));
  for (const float bad : {kInf, -kInf, std::numeric_limits<float>::quiet_NaN(),
                          -std::numeric_limits<float>::quiet_NaN()}) {
    for (const size_t place : {0U, 17U, 99U}) {
      std::vector<float> row = values;
      row[place] = bad;
      EXPECT_TRUE(HasNonFinite(row)) << bad << " at " << place;
    }
  }
}

TEST(TopGap, IsTheLeadOfTheBest) {
  EXPECT_EQ(TopGap(std::vector<float>{1, 4, 2.5F}), 1.5F);
  EXPECT_EQ(TopGap(std::vector<float>{4, 1}), 3.0F);
  EXPECT_EQ(TopGap(std::vector<float>{1, 4}), 3.0F);
  EXPECT_EQ(TopGap(std::vector<float>{4, 1, 4}), 0.0F);
  std::vector<float> many(100, 0.0F);
  many[40] = 2.0F;
  many[77] = 1.0F;
  EXPECT_EQ(TopGap(many), 1.0F);
}

}  // namespace
}  // namespace fulgur::sample

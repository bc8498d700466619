#include "bench/load/max_rate.h"

#include <gtest/gtest.h>

namespace fulgur::bench {
namespace {

// A server that holds up to `limit` requests per second.
RateSearch Search(double first, double limit, int* steps) {
  RateSearch search(first);
  for (*steps = 0; !search.done(); ++*steps) search.Report(search.rate() <= limit);
  return search;
}

TEST(RateSearch, FindsTheLimitFromBelowAndFromAbove) {
  for (const double first : {0.1, 1.0, 12.0, 13.0, 100.0, 5000.0}) {
    int steps = 0;
    const RateSearch search = Search(first, 12.3, &steps);
    ASSERT_TRUE(search.highest() && search.lowest()) << first;
    EXPECT_LE(*search.highest(), 12.3) << first;
    EXPECT_GT(*search.lowest(), 12.3) << first;
    EXPECT_LE(*search.lowest() / *search.highest(), 1.05 + 1e-9) << first;
    EXPECT_LT(steps, 16) << first;
  }
}

TEST(RateSearch, GivesUpWhereNothingHoldsOrEverythingDoes) {
  int steps = 0;
  EXPECT_FALSE(Search(1.0, 0.0, &steps).highest());
  EXPECT_EQ(steps, 20);
  EXPECT_FALSE(Search(1.0, 1e300, &steps).lowest());
}

}  // namespace
}  // namespace fulgur::bench

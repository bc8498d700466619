#include "bench/load/estimate.h"

#include <gtest/gtest.h>

namespace fulgur::bench {
namespace {

Scenario Chat() {
  Scenario scenario;
  scenario.lengths = {{.input = {.mean = 128}, .output = {.mean = 101}, .weight = 1.0}};
  scenario.requests = 300;
  return scenario;
}

TEST(Estimate, IsRequestsOfAUserTimesALatency) {
  Pace pace;
  EXPECT_NEAR(*EstimateSeconds(Chat(), 4, pace), 75 * (0.03 + 100 * 0.03), 1e-9);
  pace.Learn(
      {{"time_to_first_token", Scalar(500, "ms")}, {"inter_token_latency", Scalar(10, "ms")}});
  EXPECT_NEAR(*EstimateSeconds(Chat(), 7, pace), 43 * 1.5, 1e-9);
}

TEST(Estimate, GoesByDurationAndRateWhereTheyDecide) {
  Scenario scenario = Chat();
  scenario.rate = 12;
  EXPECT_NEAR(*EstimateSeconds(scenario, 0, {}), 25, 1e-9);
  scenario.duration_s = 60;
  EXPECT_NEAR(*EstimateSeconds(scenario, 0, {}), 60, 1e-9);
}

TEST(Estimate, SaysNothingWhereAnswersEndByThemselves) {
  Scenario scenario = Chat();
  scenario.lengths[0].output.mean = 0;
  EXPECT_FALSE(EstimateSeconds(scenario, 1, {}));
  scenario.requests.reset();
  EXPECT_FALSE(EstimateSeconds(scenario, 1, {}));
}

TEST(Estimate, RoughTimes) {
  EXPECT_EQ(RoughTime(0.2), "1 s");
  EXPECT_EQ(RoughTime(45.1), "46 s");
  EXPECT_EQ(RoughTime(700), "12 min");
  EXPECT_EQ(RoughTime(12000), "3 h 20 min");
}

}  // namespace
}  // namespace fulgur::bench

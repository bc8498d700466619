#include "bench/load/arrivals.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>

namespace fulgur::bench {
namespace {

struct GapStatistics {
  double mean_s = 0.0;
  double variation = 0.0;  // deviation / mean
};

GapStatistics Gaps(const std::vector<int64_t>& times) {
  double sum = 0.0, squares = 0.0;
  for (size_t i = 1; i < times.size(); ++i) {
    const double gap = static_cast<double>(times[i] - times[i - 1]) / 1e9;
    sum += gap;
    squares += gap * gap;
  }
  const auto n = static_cast<double>(times.size() - 1);
  const double mean = sum / n;
  return {mean, std::sqrt(squares / n - mean * mean) / mean};
}

TEST(Arrivals, ConstantGapsAreEqual) {
  RandomStream random(1, "arrivals");
  const auto times = PlanArrivals({.pattern = ArrivalPattern::kConstant, .rate = 8.0}, 5, random);
  EXPECT_THAT(times, testing::ElementsAre(0, 125'000'000, 250'000'000, 375'000'000, 500'000'000));
}

TEST(Arrivals, PoissonAndGammaHaveTheirMeanAndVariation) {
  for (const double burstiness : {0.25, 1.0, 4.0}) {
    RandomStream random(7, "arrivals");
    const ArrivalLaw law{
        .pattern = burstiness == 1.0 ? ArrivalPattern::kPoisson : ArrivalPattern::kGamma,
        .rate = 20.0,
        .burstiness = burstiness};
    const GapStatistics gaps = Gaps(PlanArrivals(law, 200'000, random));
    EXPECT_NEAR(gaps.mean_s, 0.05, 0.05 * 0.015) << burstiness;
    EXPECT_NEAR(gaps.variation, 1.0 / std::sqrt(burstiness), 0.02 / burstiness) << burstiness;
  }
}

TEST(Arrivals, AreTheSameForASeedAndEndWithTheDuration) {
  RandomStream a(3, "arrivals"), b(3, "arrivals"), other(4, "arrivals");
  const ArrivalLaw law{.rate = 100.0};
  const auto times = PlanArrivalsFor(law, 2.0, a);
  EXPECT_EQ(times, PlanArrivalsFor(law, 2.0, b));
  EXPECT_NE(times, PlanArrivalsFor(law, 2.0, other));
  EXPECT_NEAR(static_cast<double>(times.size()), 200.0, 60.0);
  EXPECT_LT(times.back(), 2'000'000'000);
}

TEST(Arrivals, NormalizedPlansEndAtCountOverRate) {
  RandomStream random(5, "arrivals");
  const auto times = PlanArrivals({.rate = 10.0, .normalize = true}, 100, random);
  EXPECT_NEAR(static_cast<double>(times.back()) / 1e9, 10.0, 1e-6);
}

TEST(Arrivals, RampsReachTheirRate) {
  for (const RampShape shape : {RampShape::kLinear, RampShape::kExponential}) {
    RandomStream random(6, "arrivals");
    const ArrivalLaw law{.pattern = ArrivalPattern::kConstant,
                         .rate = 100.0,
                         .ramp = shape,
                         .ramp_start_rate = 10.0,
                         .ramp_duration_s = 10.0};
    const auto times = PlanArrivalsFor(law, 12.0, random);
    const auto within = [&](double from, double to) {
      return static_cast<double>(std::count_if(times.begin(), times.end(), [&](int64_t time) {
        return static_cast<double>(time) >= from * 1e9 && static_cast<double>(time) < to * 1e9;
      }));
    };
    EXPECT_NEAR(within(0, 1), shape == RampShape::kLinear ? 14 : 11, 2);
    EXPECT_NEAR(within(11, 12), 100, 2);
    const double all = shape == RampShape::kLinear ? 550.0 : 90.0 / std::log(10.0) * 10.0;
    EXPECT_NEAR(within(0, 10), all, 3);
  }
}

}  // namespace
}  // namespace fulgur::bench

// Treatment against baseline: speed-ups, their intervals, verdicts.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "bench/results/comparison.h"

namespace fulgur::bench {

// One request's part of a ratio of sums: a mean has weight 1, a token-weighted rate its seconds.
struct Share {
  double value = 0.0;
  double weight = 1.0;
};

struct BootstrapOptions {
  int32_t resamples = 2000;
  uint64_t seed = 42;
};

// 95 % percentile interval of rate(treatment) / rate(baseline), or its inverse if smaller is
// better, drawing requests with replacement inside each system. Absent if one side has fewer than
// two requests.
std::optional<Interval> BootstrapSpeedup(std::span<const Share> baseline,
                                         std::span<const Share> treatment, bool larger_is_better,
                                         const BootstrapOptions& options);

// 95 % interval of the same from the means of repeated runs: Welch's t on logarithms. Absent with
// fewer than two runs on a side.
std::optional<Interval> RepetitionSpeedup(std::span<const double> baseline,
                                          std::span<const double> treatment, bool larger_is_better);

// With an interval: improved if the speed-up is at least 1 + threshold and the interval lies above
// 1, a regression if it is at most 1 - threshold and the interval lies below 1, neutral if it is
// within the threshold, else noise. Without one only the threshold decides.
Verdict Judge(double speedup, const std::optional<Interval>& interval, double threshold);

// Sets speed-up, difference and verdict from the two values and the interval.
void Complete(double threshold, Contrast& contrast);

// Whether more of a metric is better.
bool LargerIsBetter(std::string_view tag);

// Geometric means of the headline speed-ups, by scenario and over all.
std::vector<SpeedupMean> GeometricMeans(const Comparison& comparison);

}  // namespace fulgur::bench

#include "bench/results/contrast.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

#include "boost/math/distributions/students_t.hpp"

namespace fulgur::bench {
namespace {

// Uniform in [0, bound): the standard library's distributions differ between implementations.
size_t Below(size_t bound, std::mt19937_64& random) {
  __extension__ using Wide = unsigned __int128;
  return static_cast<size_t>((static_cast<Wide>(random()) * bound) >> 64);
}

double Resampled(std::span<const Share> shares, std::mt19937_64& random) {
  double value = 0.0;
  double weight = 0.0;
  for (size_t i = 0; i < shares.size(); ++i) {
    const Share& share = shares[Below(shares.size(), random)];
    value += share.value;
    weight += share.weight;
  }
  return value / weight;
}

struct MeanAndVariance {
  double mean = 0.0;
  double variance_of_mean = 0.0;
  double n = 0.0;
};

std::optional<MeanAndVariance> OfLogarithms(std::span<const double> values) {
  if (values.size() < 2) return std::nullopt;
  MeanAndVariance result;
  result.n = static_cast<double>(values.size());
  for (const double value : values) {
    if (!(value > 0)) return std::nullopt;
    result.mean += std::log(value) / result.n;
  }
  double squares = 0.0;
  for (const double value : values) squares += std::pow(std::log(value) - result.mean, 2);
  result.variance_of_mean = squares / (result.n - 1) / result.n;
  return result;
}

double WelchDegrees(const MeanAndVariance& a, const MeanAndVariance& b) {
  const double sum = a.variance_of_mean + b.variance_of_mean;
  return sum * sum /
         (a.variance_of_mean * a.variance_of_mean / (a.n - 1) +
          b.variance_of_mean * b.variance_of_mean / (b.n - 1));
}

}  // namespace

std::optional<Interval> BootstrapSpeedup(std::span<const Share> baseline,
                                         std::span<const Share> treatment, bool larger_is_better,
                                         const BootstrapOptions& options) {
  if (baseline.size() < 2 || treatment.size() < 2 || options.resamples < 40) return std::nullopt;
  std::mt19937_64 random(options.seed);
  std::vector<double> speedups;
  for (int32_t i = 0; i < options.resamples; ++i) {
    const double base = Resampled(baseline, random);
    const double treated = Resampled(treatment, random);
    const double speedup = larger_is_better ? treated / base : base / treated;
    if (!std::isfinite(speedup)) return std::nullopt;
    speedups.push_back(speedup);
  }
  std::sort(speedups.begin(), speedups.end());
  return Interval{Percentile(speedups, 2.5), Percentile(speedups, 97.5)};
}

std::optional<Interval> RepetitionSpeedup(std::span<const double> baseline,
                                          std::span<const double> treatment,
                                          bool larger_is_better) {
  const auto base = OfLogarithms(baseline);
  const auto treated = OfLogarithms(treatment);
  if (!base || !treated) return std::nullopt;
  const double error = std::sqrt(base->variance_of_mean + treated->variance_of_mean);
  const double sign = larger_is_better ? 1.0 : -1.0;
  const double log_speedup = sign * (treated->mean - base->mean);
  double reach = 0.0;
  if (error > 0) {
    const boost::math::students_t student(WelchDegrees(*base, *treated));
    reach = boost::math::quantile(student, 0.975) * error;
  }
  const Interval interval{std::exp(log_speedup - reach), std::exp(log_speedup + reach)};
  return std::isfinite(interval.high) ? std::optional(interval) : std::nullopt;
}

Verdict Judge(double speedup, const std::optional<Interval>& interval, double threshold) {
  if (speedup >= 1 + threshold && (!interval || interval->low > 1)) return Verdict::kImproved;
  if (speedup <= 1 - threshold && (!interval || interval->high < 1)) return Verdict::kRegression;
  return std::fabs(speedup - 1) < threshold ? Verdict::kNeutral : Verdict::kNoise;
}

void Complete(double threshold, Contrast& contrast) {
  const auto& base = contrast.baseline;
  const auto& treated = contrast.treatment;
  if (!base || !treated) return;
  if (*base != 0) contrast.delta_percent = (*treated - *base) / *base * 100.0;
  if (!(*base > 0) || !(*treated > 0)) {
    contrast.note = "a value is not above 0";
    return;
  }
  contrast.speedup = contrast.larger_is_better ? *treated / *base : *base / *treated;
  contrast.verdict = Judge(*contrast.speedup, contrast.interval, threshold);
}

bool LargerIsBetter(std::string_view tag) {
  return tag.find("throughput") != std::string_view::npos ||
         tag.find("per_user") != std::string_view::npos || tag.starts_with("good");
}

std::vector<SpeedupMean> GeometricMeans(const Comparison& comparison) {
  std::vector<SpeedupMean> means;
  const auto add = [&](const std::string& scenario) {
    SpeedupMean mean{scenario, 0.0, 0};
    double logarithms = 0.0;
    for (const Contrast& contrast : comparison.contrasts) {
      const bool wanted = scenario.empty() || contrast.scenario == scenario;
      if (!wanted || contrast.tag != kHeadlineTag || contrast.statistic != "avg") continue;
      if (!contrast.speedup) continue;
      logarithms += std::log(*contrast.speedup);
      ++mean.cells;
    }
    if (mean.cells == 0) return;
    mean.mean = std::exp(logarithms / mean.cells);
    means.push_back(mean);
  };
  for (const ScenarioFacts& scenario : comparison.scenarios) add(scenario.id);
  add("");
  return means;
}

}  // namespace fulgur::bench

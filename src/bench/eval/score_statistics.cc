#include "bench/eval/score_statistics.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>
#include <vector>

#include "base/check.h"

namespace fulgur::bench {
namespace {

constexpr double kZ95 = 1.959963984540054;  // of the normal distribution, two-sided
constexpr int kResamples = 10000;

double Mean(std::span<const double> values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

double LogChoose(int64_t n, int64_t k) {
  const auto log_factorial = [](int64_t x) { return std::lgamma(static_cast<double>(x) + 1.0); };
  return log_factorial(n) - log_factorial(k) - log_factorial(n - k);
}

}  // namespace

double StandardError(std::span<const double> values) {
  if (values.size() < 2) return 0.0;
  const double mean = Mean(values);
  double squares = 0.0;
  for (double value : values) squares += (value - mean) * (value - mean);
  const auto n = static_cast<double>(values.size());
  return std::sqrt(squares / (n - 1.0) / n);
}

Interval WilsonInterval(int64_t successes, int64_t trials) {
  if (trials == 0) return {0.0, 1.0};
  const auto n = static_cast<double>(trials);
  const double p = static_cast<double>(successes) / n;
  const double z2 = kZ95 * kZ95;
  const double centre = (p + z2 / (2.0 * n)) / (1.0 + z2 / n);
  const double half = kZ95 * std::sqrt(p * (1.0 - p) / n + z2 / (4.0 * n * n)) / (1.0 + z2 / n);
  return {std::max(0.0, centre - half), std::min(1.0, centre + half)};
}

double PassAtK(int64_t n, int64_t c, int64_t k) {
  CHECK(k >= 1 && k <= n && c <= n);
  if (n - c < k) return 1.0;
  double none = 1.0;
  for (int64_t i = n - c + 1; i <= n; ++i) {
    none *= 1.0 - static_cast<double>(k) / static_cast<double>(i);
  }
  return 1.0 - none;
}

double McNemarP(const PairedOutcome& outcome) {
  const int64_t n = outcome.only_first + outcome.only_second;
  const int64_t fewer = std::min(outcome.only_first, outcome.only_second);
  double tail = 0.0;
  for (int64_t i = 0; i <= fewer; ++i) {
    tail += std::exp(LogChoose(n, i) - static_cast<double>(n) * std::log(2.0));
  }
  return std::min(1.0, 2.0 * tail);
}

Interval BootstrapDifference(std::span<const double> first, std::span<const double> second,
                             uint64_t seed) {
  CHECK_EQ(first.size(), second.size());
  if (first.empty()) return {};
  std::mt19937_64 random(seed);
  std::uniform_int_distribution<size_t> draw(0, first.size() - 1);
  std::vector<double> means(kResamples);
  for (double& mean : means) {
    double sum = 0.0;
    for (size_t i = 0; i < first.size(); ++i) {
      const size_t item = draw(random);
      sum += first[item] - second[item];
    }
    mean = sum / static_cast<double>(first.size());
  }
  std::sort(means.begin(), means.end());
  return {means[static_cast<size_t>(kResamples * 0.025)],
          means[static_cast<size_t>(kResamples * 0.975)]};
}

}  // namespace fulgur::bench

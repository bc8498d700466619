#include "bench/stats/metric.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "boost/math/distributions/binomial.hpp"

namespace fulgur::bench {
namespace {

// Neumaier's compensated sum: long runs add millions of small gaps.
double Sum(std::span<const double> values) {
  double sum = 0.0;
  double lost = 0.0;
  for (const double value : values) {
    const double next = sum + value;
    lost += std::fabs(sum) >= std::fabs(value) ? (sum - next) + value : (value - next) + sum;
    sum = next;
  }
  return sum + lost;
}

constexpr double kTail = 0.025;  // on each side

using boost::math::binomial;
using boost::math::cdf;

// The largest k with P(X <= k) <= kTail; -1 if there is none.
int64_t LowerRank(const binomial& law) {
  auto k = static_cast<int64_t>(boost::math::quantile(law, kTail)) + 1;
  while (k >= 0 && cdf(law, static_cast<double>(k)) > kTail) --k;
  return k;
}

// The smallest k with P(X <= k) >= 1 - kTail.
int64_t UpperRank(const binomial& law) {
  auto k = std::max<int64_t>(0, static_cast<int64_t>(boost::math::quantile(law, 1 - kTail)) - 1);
  while (cdf(law, static_cast<double>(k)) < 1 - kTail) ++k;
  return k;
}

}  // namespace

std::optional<PercentileBounds> BoundsOfPercentile(std::span<const double> ascending, double q) {
  const auto n = static_cast<int64_t>(ascending.size());
  if (n < 2 || q <= 0 || q >= 100) return std::nullopt;
  const binomial law(static_cast<double>(n), q / 100.0);
  const int64_t low = LowerRank(law);
  const int64_t high = UpperRank(law);
  if (low < 0 || high >= n) return std::nullopt;
  return PercentileBounds{ascending[static_cast<size_t>(low)],
                          ascending[static_cast<size_t>(high)]};
}

double Percentile(std::span<const double> ascending, double q) {
  CHECK(!ascending.empty());
  const double rank = q / 100.0 * static_cast<double>(ascending.size() - 1);
  const auto low = static_cast<size_t>(rank);
  const size_t high = std::min(low + 1, ascending.size() - 1);
  return ascending[low] + (rank - static_cast<double>(low)) * (ascending[high] - ascending[low]);
}

MetricBlock Summarize(std::vector<double> values, std::string_view unit) {
  MetricBlock block;
  block.unit = unit;
  if (values.empty()) return block;
  std::sort(values.begin(), values.end());
  const auto n = static_cast<double>(values.size());
  const double sum = Sum(values);
  const double mean = sum / n;
  std::vector<double> squares(values.size());
  std::transform(values.begin(), values.end(), squares.begin(),
                 [mean](double value) { return (value - mean) * (value - mean); });
  for (const int q : kPercentiles) block.percentiles[q] = Percentile(values, q);
  block.avg = mean;
  block.min = values.front();
  block.max = values.back();
  block.std = std::sqrt(Sum(squares) / n);
  block.count = static_cast<int64_t>(values.size());
  block.sum = sum;
  return block;
}

MetricBlock Scalar(double value, std::string_view unit) {
  MetricBlock block;
  block.unit = unit;
  block.avg = value;
  return block;
}

}  // namespace fulgur::bench

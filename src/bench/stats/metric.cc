#include "bench/stats/metric.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"

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

}  // namespace

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

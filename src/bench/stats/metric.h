// Metrics as tag -> block of statistics, the common currency of readers, writers, workbook and
// report.
//
// A value that is absent was not measured. It is never written as 0 and never compared as 0.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace fulgur::bench {

// The percentiles that aiperf's files carry.
inline constexpr int kPercentiles[] = {1, 5, 10, 25, 50, 75, 90, 95, 99};

struct MetricBlock {
  std::string unit;  // as aiperf spells it: "ms", "sec", "tokens/sec/user" ...
  std::optional<double> avg;
  std::map<int, double> percentiles;
  std::optional<double> min;
  std::optional<double> max;
  std::optional<double> std;  // population (divided by n)
  std::optional<int64_t> count;
  std::optional<double> sum;
};

using MetricMap = std::map<std::string, MetricBlock>;

// Type 7 of Hyndman and Fan (numpy's "linear") on ascending values, q in [0, 100]; values must not
// be empty.
double Percentile(std::span<const double> ascending, double q);

// An interval that holds the percentile of the whole population with 95 % probability, whatever the
// distribution: two order statistics. Absent if the sample is too small to bound it on both sides.
struct PercentileBounds {
  double low = 0.0;
  double high = 0.0;
};
std::optional<PercentileBounds> BoundsOfPercentile(std::span<const double> ascending, double q);

// All statistics of a sample; every field absent if it is empty.
MetricBlock Summarize(std::vector<double> values, std::string_view unit);

// A run-level value: only `avg`.
MetricBlock Scalar(double value, std::string_view unit);

}  // namespace fulgur::bench

// Counts of values in buckets that grow with the value, for samples too large to keep.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "bench/stats/metric.h"

namespace fulgur::bench {

// 2^kPrecisionBits buckets per power of two: a percentile is off by at most 0.05 %. Mean,
// deviation, sum and extremes are exact. Values are not negative; those below the smallest bucket
// count as 0.
class LogHistogram {
 public:
  void Add(double value);
  MetricBlock Summarize(std::string_view unit) const;
  double Percentile(double q) const;  // count() > 0
  int64_t count() const { return count_; }

 private:
  std::vector<int64_t> buckets_;
  int64_t count_ = 0;
  double sum_ = 0.0;
  double squares_ = 0.0;  // of the distances from the running mean (Welford)
  double mean_ = 0.0;
  double min_ = 0.0;
  double max_ = 0.0;
};

}  // namespace fulgur::bench

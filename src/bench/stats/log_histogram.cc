#include "bench/stats/log_histogram.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace fulgur::bench {
namespace {

constexpr int kPrecisionBits = 10;
constexpr int kSubBuckets = 1 << kPrecisionBits;
constexpr int kMinExponent = -20;  // 1e-6: a nanosecond, if values are milliseconds
constexpr int kMaxExponent = 40;

size_t BucketOf(double value) {
  int exponent = 0;
  const double mantissa = std::frexp(value, &exponent);  // [0.5, 1)
  if (!(value > 0.0) || exponent < kMinExponent) return 0;
  exponent = std::min(exponent, kMaxExponent);
  const int sub = static_cast<int>((mantissa - 0.5) * 2.0 * kSubBuckets);
  const int bucket = (exponent - kMinExponent) * kSubBuckets + sub + 1;
  return static_cast<size_t>(bucket);
}

double MiddleOf(size_t bucket) {
  if (bucket == 0) return 0.0;
  const auto index = static_cast<int>(bucket) - 1;
  const double mantissa = 0.5 + (index % kSubBuckets + 0.5) / (2.0 * kSubBuckets);
  return std::ldexp(mantissa, index / kSubBuckets + kMinExponent);
}

}  // namespace

void LogHistogram::Add(double value) {
  const size_t bucket = BucketOf(value);
  if (bucket >= buckets_.size()) buckets_.resize(bucket + 1);
  ++buckets_[bucket];
  min_ = count_ == 0 ? value : std::min(min_, value);
  max_ = count_ == 0 ? value : std::max(max_, value);
  ++count_;
  sum_ += value;
  const double distance = value - mean_;
  mean_ += distance / static_cast<double>(count_);
  squares_ += distance * (value - mean_);
}

double LogHistogram::Percentile(double q) const {
  CHECK_GT(count_, 0);
  const double rank = q / 100.0 * static_cast<double>(count_ - 1);
  int64_t seen = 0;
  for (size_t bucket = 0; bucket < buckets_.size(); ++bucket) {
    seen += buckets_[bucket];
    if (static_cast<double>(seen) > rank) return std::clamp(MiddleOf(bucket), min_, max_);
  }
  return max_;
}

MetricBlock LogHistogram::Summarize(std::string_view unit) const {
  MetricBlock block;
  block.unit = unit;
  if (count_ == 0) return block;
  for (const int q : kPercentiles) block.percentiles[q] = Percentile(q);
  block.avg = mean_;
  block.min = min_;
  block.max = max_;
  block.std = std::sqrt(squares_ / static_cast<double>(count_));
  block.count = count_;
  block.sum = sum_;
  return block;
}

}  // namespace fulgur::bench

// The Prometheus text format 0.0.4, written by hand: it is a few lines per sample.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace fulgur::server {

// Label pairs as they appear between braces: `engine="0",model_name="x"`; may be empty.
std::string MetricLabels(
    std::initializer_list<std::pair<std::string_view, std::string_view>> pairs);
std::string JoinLabels(std::string_view a, std::string_view b);

// Counts of observations per bucket. Not thread-safe.
class Histogram {
 public:
  explicit Histogram(std::vector<double> upper_bounds);  // ascending, without infinity
  Histogram(std::vector<double> upper_bounds, std::vector<int64_t> counts, double sum)
      : upper_bounds_(std::move(upper_bounds)), counts_(std::move(counts)), sum_(sum) {}
  void Observe(double value);

  const std::vector<double>& upper_bounds() const { return upper_bounds_; }
  const std::vector<int64_t>& counts() const { return counts_; }  // one more than bounds
  double sum() const { return sum_; }

 private:
  std::vector<double> upper_bounds_;
  std::vector<int64_t> counts_;
  double sum_ = 0;
};

// 1, 2, 5, 10, 20, 50, ... up to `limit`.
std::vector<double> OneTwoFiveBuckets(int64_t limit);

// Builds one answer of /metrics. Samples of a family follow its header.
class Exposition {
 public:
  // `start_seconds`: when the process began to count, for the _created series.
  explicit Exposition(double start_seconds) : start_seconds_(start_seconds) {}

  // Announces a family; for counters the name comes without _total.
  void Gauge(std::string_view name, std::string_view help);
  void Counter(std::string_view name, std::string_view help);
  void HistogramFamily(std::string_view name, std::string_view help);
  void SummaryFamily(std::string_view name, std::string_view help);

  // Samples of the family announced last.
  void Value(std::string_view labels, double value);
  void Values(std::string_view labels, const Histogram& histogram);
  void Summary(std::string_view labels, int64_t count, double sum);

  // A family with one sample.
  void Gauge(std::string_view name, std::string_view help, std::string_view labels, double value);
  void Counter(std::string_view name, std::string_view help, std::string_view labels, double value);

  std::string Take();

 private:
  void Header(std::string_view name, std::string_view help, std::string_view type);
  void FlushCreated();
  void Sample(std::string_view suffix, std::string_view labels, double value);

  double start_seconds_;
  std::string out_;
  std::string name_;
  bool is_counter_ = false;
  std::string created_;  // _created samples of the current family
};

}  // namespace fulgur::server

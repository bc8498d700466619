// The highest arrival rate at which nearly all requests still meet their objectives, as MLPerf's
// server scenario scores a system.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "bench/load/run_bench.h"

namespace fulgur::bench {

// Where to look next: doubles or halves until a rate that holds and one that does not are known,
// then goes to their geometric mean until they are within 5 %.
class RateSearch {
 public:
  explicit RateSearch(double first) : rate_(first) {}

  double rate() const { return rate_; }
  bool done() const { return done_; }
  // What came of rate().
  void Report(bool held);

  std::optional<double> highest() const { return low_; }  // that held
  std::optional<double> lowest() const { return high_; }  // that did not

 private:
  double rate_;
  std::optional<double> low_;
  std::optional<double> high_;
  int64_t steps_ = 0;
  bool done_ = false;
};

struct RateStep {
  double rate = 0.0;      // requests per second
  double attained = 0.0;  // part of the requests that met all objectives
  int64_t requests = 0;
  bool held = false;
};

struct MaxRate {
  std::vector<RateStep> steps;
  std::optional<double> highest;  // that held; absent if none did
  std::optional<double> lowest;   // that did not
  RunSummary summary;             // the cells of the steps
  std::string stopped_because;    // the search is not through: one sentence
};

// Measures the one scenario of `options`, which has a rate to begin with and objectives, at one
// rate after the other, each into rate_<R>/, and writes max_rate.json into the artifact folder.
// Errors as of RunBench().
absl::StatusOr<MaxRate> FindMaxRate(const RunOptions& options, const RunHooks& hooks);

}  // namespace fulgur::bench

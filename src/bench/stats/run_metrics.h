// The metrics of a whole run, from its records.
//
// Rates are over the phase window, as aiperf computes them since 0.12: from just before the first
// send to the return of the last record, failed ones included. The same rate over
// benchmark_duration (first valid send to last valid token) stands beside it, since older files
// have no other.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "bench/stats/goodput.h"
#include "bench/stats/metric.h"
#include "bench/stats/record.h"

namespace fulgur::bench {

struct RunWindow {
  int64_t start_ns = 0;
  int64_t end_ns = 0;
};

// Takes records one by one and keeps of each only the numbers that the result needs: memory grows
// by some 300 bytes a request, whatever the length of its answer. One thread.
class RunAccumulator {
 public:
  explicit RunAccumulator(std::vector<Objective> objectives);
  ~RunAccumulator();
  RunAccumulator(RunAccumulator&&) noexcept;

  // Warm-up records are ignored. A cancelled record without an error (the run ended first) counts
  // as unfinished, not as failed.
  void Add(const RequestRecord& record);

  int64_t valid() const;
  int64_t failed() const;

  MetricMap Compute(const RunWindow& window) const;

  struct Sample;  // defined in run_metrics.cc

 private:
  std::vector<Objective> objectives_;
  std::unique_ptr<Sample> sample_;
};

// Records of the profiling phase (warm-up ones are left out). Without objectives there is no
// goodput.
MetricMap ComputeRunMetrics(const std::vector<RequestRecord>& records, const RunWindow& window,
                            const std::vector<Objective>& objectives);

}  // namespace fulgur::bench

// The metrics of a whole run, from its records.
//
// Rates are over the phase window, as aiperf computes them since 0.12: from just before the first
// send to the return of the last record, failed ones included. The same rate over
// benchmark_duration (first valid send to last valid token) stands beside it, since older files
// have no other.
#pragma once

#include <cstdint>
#include <vector>

#include "bench/stats/goodput.h"
#include "bench/stats/metric.h"
#include "bench/stats/record.h"

namespace fulgur::bench {

struct RunWindow {
  int64_t start_ns = 0;
  int64_t end_ns = 0;
};

// Records of the profiling phase (warm-up ones are left out). Without objectives there is no
// goodput.
MetricMap ComputeRunMetrics(const std::vector<RequestRecord>& records, const RunWindow& window,
                            const std::vector<Objective>& objectives);

}  // namespace fulgur::bench

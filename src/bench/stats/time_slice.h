// A stretch of a run with its metrics.
#pragma once

#include <cstdint>

#include "bench/stats/metric.h"

namespace fulgur::bench {

struct TimeSlice {
  int64_t start_ns = 0;  // wall clock
  int64_t end_ns = 0;
  bool complete = true;  // false: the run ended inside
  MetricMap metrics;
};

}  // namespace fulgur::bench

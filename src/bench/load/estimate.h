// How long a run will take: a guess that gets better with every cell.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "bench/load/run_options.h"
#include "bench/stats/metric.h"

namespace fulgur::bench {

// How fast the server seems to be. The first guess is 30 ms, for a first and for any other token.
struct Pace {
  double first_token_s = 0.03;
  double token_s = 0.03;

  // Takes over what was measured, as far as it was.
  void Learn(const MetricMap& metrics);
};

// The measured part of one cell in seconds: by its duration, its rate, or requests a user times
// the latency of one. None where the number or length of its answers is not known beforehand.
std::optional<double> EstimateSeconds(const Scenario& scenario, int64_t concurrency,
                                      const Pace& pace);

// "45 s", "12 min", "3 h 20 min"
std::string RoughTime(double seconds);

}  // namespace fulgur::bench

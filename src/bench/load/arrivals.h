// When an open loop sends: all times are fixed before the run.
#pragma once

#include <cstdint>
#include <vector>

#include "bench/load/random.h"

namespace fulgur::bench {

enum class ArrivalPattern { kConstant, kPoisson, kGamma };
enum class RampShape { kNone, kLinear, kExponential };

struct ArrivalLaw {
  ArrivalPattern pattern = ArrivalPattern::kPoisson;
  double rate = 1.0;        // requests per second; at the end of a ramp
  double burstiness = 1.0;  // shape of the gamma gaps: 1 is Poisson, larger is more even
  RampShape ramp = RampShape::kNone;
  double ramp_start_rate = 0.0;
  double ramp_duration_s = 0.0;
  // Stretches the plan to end at exactly n / rate, as vLLM's client does; it takes the natural
  // variance of the count away.
  bool normalize = false;
};

// Offsets from the start of `count` requests, in nanoseconds, ascending.
std::vector<int64_t> PlanArrivals(const ArrivalLaw& law, int64_t count, RandomStream& random);

// As many as fall into `duration_s`.
std::vector<int64_t> PlanArrivalsFor(const ArrivalLaw& law, double duration_s,
                                     RandomStream& random);

}  // namespace fulgur::bench

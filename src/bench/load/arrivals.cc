#include "bench/load/arrivals.h"

#include <algorithm>
#include <cmath>

namespace fulgur::bench {
namespace {

constexpr double kNsPerSecond = 1e9;
constexpr size_t kMaxArrivals = 50'000'000;

// A gap of a process with rate 1.
double UnitGap(const ArrivalLaw& law, RandomStream& random) {
  switch (law.pattern) {
    case ArrivalPattern::kConstant:
      return 1.0;
    case ArrivalPattern::kPoisson:
      return random.Exponential();
    case ArrivalPattern::kGamma:
      return random.Gamma(law.burstiness) / law.burstiness;
  }
  return 1.0;
}

// The time at which the integrated rate reaches `expected` requests: a process of rate 1 sent
// through it has the rate wanted at every moment.
double TimeOf(const ArrivalLaw& law, double expected) {
  const double span = law.ramp_duration_s;
  if (law.ramp == RampShape::kNone || span <= 0.0) return expected / law.rate;
  const double from = std::max(law.ramp_start_rate, 1e-6);
  const double to = law.rate;
  const double growth = std::log(to / from) / span;
  const bool flat = std::fabs(to - from) < 1e-12;
  const double during =
      law.ramp == RampShape::kLinear || flat ? (from + to) / 2.0 * span : (to - from) / growth;
  if (expected >= during) return span + (expected - during) / to;
  if (flat) return expected / from;
  if (law.ramp == RampShape::kExponential) return std::log1p(expected * growth / from) / growth;
  const double slope = (to - from) / span;
  return (std::sqrt(from * from + 2.0 * slope * expected) - from) / slope;
}

int64_t ToNs(double seconds) { return static_cast<int64_t>(seconds * kNsPerSecond); }

void Normalize(const ArrivalLaw& law, std::vector<int64_t>& times) {
  if (!law.normalize || times.empty() || times.back() <= 0) return;
  const double wanted = static_cast<double>(times.size()) / law.rate * kNsPerSecond;
  const double factor = wanted / static_cast<double>(times.back());
  for (int64_t& time : times) time = static_cast<int64_t>(static_cast<double>(time) * factor);
}

}  // namespace

std::vector<int64_t> PlanArrivals(const ArrivalLaw& law, int64_t count, RandomStream& random) {
  std::vector<int64_t> times;
  double expected = 0.0;
  for (int64_t i = 0; i < count; ++i) {
    // The first request of a constant rate goes out at once, as with aiperf.
    if (i > 0 || law.pattern != ArrivalPattern::kConstant) expected += UnitGap(law, random);
    times.push_back(ToNs(TimeOf(law, expected)));
  }
  Normalize(law, times);
  return times;
}

std::vector<int64_t> PlanArrivalsFor(const ArrivalLaw& law, double duration_s,
                                     RandomStream& random) {
  std::vector<int64_t> times;
  const int64_t end = ToNs(duration_s);
  double expected = law.pattern == ArrivalPattern::kConstant ? 0.0 : UnitGap(law, random);
  while (times.size() < kMaxArrivals) {
    const int64_t time = ToNs(TimeOf(law, expected));
    if (time >= end) break;
    times.push_back(time);
    expected += UnitGap(law, random);
  }
  return times;
}

}  // namespace fulgur::bench

// The two clocks of a measurement.
#pragma once

#include <time.h>

#include <cstdint>

namespace fulgur::bench {

inline int64_t ReadClock(clockid_t clock) {
  timespec time{};
  clock_gettime(clock, &time);
  return int64_t{1'000'000'000} * time.tv_sec + time.tv_nsec;
}

inline int64_t MonotonicNs() { return ReadClock(CLOCK_MONOTONIC); }
inline int64_t WallNs() { return ReadClock(CLOCK_REALTIME); }

}  // namespace fulgur::bench

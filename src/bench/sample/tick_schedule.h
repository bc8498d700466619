// Deadlines start + k * interval, k = 1, 2 ...: never later because of what happens between.
#pragma once

#include <chrono>
#include <cstdint>

namespace fulgur::bench {

class TickSchedule {
 public:
  using Clock = std::chrono::steady_clock;  // CLOCK_MONOTONIC

  struct Deadline {
    Clock::time_point at;
    int64_t missed = 0;  // deadlines between the last one and this that had already passed
  };

  TickSchedule(Clock::time_point start, Clock::duration interval)
      : start_(start), interval_(interval) {}

  // The next deadline after the last one that lies in the future of `now`.
  Deadline Next(Clock::time_point now) {
    const int64_t last = count_;
    ++count_;
    if (now >= At(count_)) count_ = (now - start_) / interval_ + 1;
    return {At(count_), count_ - last - 1};
  }

 private:
  Clock::time_point At(int64_t count) const { return start_ + count * interval_; }

  const Clock::time_point start_;
  const Clock::duration interval_;
  int64_t count_ = 0;
};

}  // namespace fulgur::bench

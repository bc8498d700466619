// Shows how far the loading of weights is: a bar on a terminal, a line now and then in a log.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace fulgur::cli {

class LoadProgress {
 public:
  using Clock = std::chrono::steady_clock;

  // `terminal`: draw a bar on standard error instead of writing log lines.
  explicit LoadProgress(bool terminal) : terminal_(terminal), start_(Clock::now()) {}

  // One caller at a time.
  void Update(int64_t done_bytes, int64_t total_bytes);

 private:
  const bool terminal_;
  const Clock::time_point start_;
  Clock::time_point shown_;
  bool finished_ = false;
};

// "[########........] 52 %  1.2 of 2.3 GB, 0.9 GB/s".
std::string ProgressBar(int64_t done_bytes, int64_t total_bytes, double seconds);

}  // namespace fulgur::cli

// SIGTERM and SIGINT as something to wait for.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "absl/time/time.h"

namespace fulgur::cli {

// Create one before any other thread: it blocks the signals in this thread, and so in all that are
// started later, and receives them in its own. The first signal is for WaitFor() if that was
// announced by Arm(). Before, nothing is being served, and after it, somebody has lost patience:
// then a signal ends the process at once, with the code that a shell gives it (128 + signal).
class ShutdownSignal {
 public:
  ShutdownSignal();
  ~ShutdownSignal();
  ShutdownSignal(const ShutdownSignal&) = delete;
  ShutdownSignal& operator=(const ShutdownSignal&) = delete;

  void Arm() { armed_ = true; }

  // True as soon as a signal has come; false if none came in that time.
  bool WaitFor(absl::Duration time);

 private:
  void Receive();

  std::atomic<bool> armed_{false};
  std::atomic<bool> stop_{false};
  std::mutex mutex_;
  std::condition_variable changed_;
  bool received_ = false;                              // guarded by mutex_
  std::chrono::steady_clock::time_point received_at_;  // guarded by mutex_
  std::thread receiver_;
};

}  // namespace fulgur::cli

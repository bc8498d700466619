// Sessions made ahead of their time by a thread of its own, so that making prompts never delays a
// send. Holds a bounded number of sessions and bytes.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>

#include "bench/load/session.h"

namespace fulgur::bench {

class SessionQueue {
 public:
  // `make` gives the next session, or none at the end; it is called from the queue's thread only.
  SessionQueue(std::function<std::optional<PlannedSession>()> make, size_t capacity_bytes,
               size_t capacity_sessions);
  ~SessionQueue();
  SessionQueue(const SessionQueue&) = delete;
  SessionQueue& operator=(const SessionQueue&) = delete;

  // Until the queue is full or complete: to be called before the measurement.
  void WaitUntilFilled();

  // The next session; none: not made yet, or AtEnd().
  std::optional<PlannedSession> TryTake();
  bool AtEnd() const;

 private:
  void Fill();
  bool IsFull() const;  // mutex_ is held

  const std::function<std::optional<PlannedSession>()> make_;
  const size_t capacity_bytes_;
  const size_t capacity_sessions_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<PlannedSession> sessions_;  // guarded by mutex_, as all below
  size_t bytes_ = 0;
  bool complete_ = false;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace fulgur::bench

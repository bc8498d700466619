// How many workers of a team should be active on a machine that other programs use, too.
//
// All workers meet after every stage, so a single one that waits for a core holds up the others:
// with two threads on two cores, one of which is busy, a step can take twice as long as with one
// thread alone. The kernel counts how long each thread was ready to run but had no core
// (/proc/self/task/*/schedstat); workers that wait long are left out, and tried again later. The
// results of a step do not depend on the number of workers.
#pragma once

#include <chrono>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/team.h"

namespace fulgur::base {

// Of one thread since its start, or over a while.
struct CoreTimes {
  int64_t ran_ns = 0;
  int64_t waited_ns = 0;  // ready, without a core
};

// Zeros where the kernel does not tell.
CoreTimes ReadCoreTimes(int thread_id);

// The decision, from plain numbers. One thread.
class TeamSizePolicy {
 public:
  using Clock = std::chrono::steady_clock;

  explicit TeamSizePolicy(int size) : size_(size) {}

  // The number of workers from now on; `times`: of each active worker, since the last call.
  int Next(int active, std::span<const CoreTimes> times, Clock::time_point now);

 private:
  const int size_;
  std::chrono::seconds patience_{10};  // before the whole team is tried again
  Clock::time_point retry_at_{};
  bool retrying_ = false;
};

// Applies the policy to a team. Called by the thread that calls Run, between regions.
class TeamSizer {
 public:
  explicit TeamSizer(WorkerTeam& team);

  // Looks about once in a second. Returns a sentence for the log when the number of active workers
  // changed, else an empty one.
  std::string AfterRegion();

 private:
  std::vector<CoreTimes> TimesSinceLastLook();

  WorkerTeam& team_;
  TeamSizePolicy policy_;
  TeamSizePolicy::Clock::time_point next_look_ = {};
  bool has_looked_ = false;
  std::vector<CoreTimes> last_;  // [size], since the threads' start
};

}  // namespace fulgur::base

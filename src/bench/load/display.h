// Shows how a cell goes on: one line that is written over on a terminal, a line now and then in a
// log.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <string>
#include <thread>

#include "bench/load/load_spec.h"

namespace fulgur::bench {

class Display {
 public:
  enum class Style { kTerminal, kLog, kSilent };

  // `counts` must outlive the display. `duration_ns` is 0 without a limit of time.
  Display(Style style, std::string cell, const LiveCounts& counts, int64_t duration_ns);
  ~Display();
  Display(const Display&) = delete;
  Display& operator=(const Display&) = delete;

  // A line of its own, that stays.
  void Say(const std::string& sentence);

 private:
  void Work();
  std::string Line() const;

  const Style style_;
  const std::string cell_;
  const LiveCounts& counts_;
  const int64_t duration_ns_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool stopping_ = false;  // guarded by mutex_
  std::thread thread_;
};

}  // namespace fulgur::bench

// Reads a device source in a thread of its own and keeps the newest values.
#pragma once

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "bench/sample/device_source.h"
#include "bench/sample/tick_schedule.h"

namespace fulgur::bench {

class DevicePoller {
 public:
  using Clock = TickSchedule::Clock;

  // Reads shortly before each deadline of start + k * interval, so that values are fresh then.
  DevicePoller(std::unique_ptr<DeviceSource> source, Clock::time_point start,
               Clock::duration interval);
  ~DevicePoller();

  struct Values {
    std::vector<DeviceReading> readings;
    Clock::time_point taken;
  };

  // None until the first reading is done. Callable from any thread.
  std::optional<Values> newest() const;

  // Why the last reading failed; empty if it did not.
  std::string error() const;

 private:
  void Run();
  bool WaitUntil(Clock::time_point time);  // false when stopping

  const std::unique_ptr<DeviceSource> source_;
  TickSchedule schedule_;
  mutable std::mutex mutex_;
  std::condition_variable stopped_;
  bool stopping_ = false;
  std::optional<Values> newest_;
  std::string error_;
  std::thread thread_;
};

}  // namespace fulgur::bench

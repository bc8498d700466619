#include "bench/sample/device_poller.h"

#include <algorithm>
#include <utility>

namespace fulgur::bench {
namespace {

using namespace std::chrono_literals;

TickSchedule::Clock::duration Lead(TickSchedule::Clock::duration interval) {
  return std::min<TickSchedule::Clock::duration>(interval / 4, 100ms);
}

}  // namespace

DevicePoller::DevicePoller(std::unique_ptr<DeviceSource> source, Clock::time_point start,
                           Clock::duration interval)
    : source_(std::move(source)),
      schedule_(start - Lead(interval), interval),
      thread_([this] { Run(); }) {}

DevicePoller::~DevicePoller() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  stopped_.notify_all();
  source_->Cancel();
  thread_.join();
}

std::optional<DevicePoller::Values> DevicePoller::newest() const {
  std::lock_guard lock(mutex_);
  return newest_;
}

std::string DevicePoller::error() const {
  std::lock_guard lock(mutex_);
  return error_;
}

bool DevicePoller::WaitUntil(Clock::time_point time) {
  std::unique_lock lock(mutex_);
  return !stopped_.wait_until(lock, time, [this] { return stopping_; });
}

void DevicePoller::Run() {
  do {
    auto readings = source_->Read();
    const auto now = Clock::now();
    {
      std::lock_guard lock(mutex_);
      if (stopping_) return;
      error_ = readings.ok() ? "" : std::string(readings.status().message());
      if (readings.ok()) newest_ = Values{*std::move(readings), now};
    }
    if (!error().empty() && !WaitUntil(now + 1s)) return;
  } while (WaitUntil(source_->has_own_pace() ? Clock::now() : schedule_.Next(Clock::now()).at));
}

}  // namespace fulgur::bench

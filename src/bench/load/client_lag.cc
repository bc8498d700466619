#include "bench/load/client_lag.h"

#include "bench/load/clock.h"

namespace fulgur::bench {
namespace {

constexpr int64_t kPeriodNs = 1'000'000;

}  // namespace

void ClientLag::Start() {
  running_ = std::make_shared<bool>(true);
  started_ns_ = MonotonicNs();
  cpu_start_ns_ = ReadClock(CLOCK_THREAD_CPUTIME_ID);
  due_ns_ = started_ns_ + kPeriodNs;
  Tick();
}

void ClientLag::Stop() {
  if (!running_ || !*running_) return;
  *running_ = false;
  stopped_ns_ = MonotonicNs();
  cpu_end_ns_ = ReadClock(CLOCK_THREAD_CPUTIME_ID);
}

void ClientLag::Tick() {
  client_.RunAt(due_ns_, [this, running = running_] {
    if (!*running) return;
    for (const int64_t now = MonotonicNs(); due_ns_ <= now; due_ns_ += kPeriodNs) {
      ticks_.Add(static_cast<double>(now - due_ns_) / 1e6);
    }
    Tick();
  });
}

void ClientLag::AddMetrics(MetricMap& metrics) const {
  if (ticks_.count() > 0) metrics["fulgur_client_lag"] = ticks_.Summarize("ms");
  if (sends_.count() > 0) metrics["fulgur_send_lag"] = sends_.Summarize("ms");
  if (stopped_ns_ > started_ns_) {
    metrics["fulgur_client_cpu"] = Scalar(static_cast<double>(cpu_end_ns_ - cpu_start_ns_) /
                                              static_cast<double>(stopped_ns_ - started_ns_),
                                          "ratio");
  }
}

}  // namespace fulgur::bench

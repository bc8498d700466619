// How late this program itself is: what it adds to every time that it measures.
//
// A timer is due every millisecond; how late it is handled is how late a message that came at that
// moment would have been read. Ticks that a stall swallowed count, each with its own lateness, so
// that one long stall weighs as long as it lasted.
#pragma once

#include <cstdint>
#include <memory>

#include "bench/load/http_client.h"
#include "bench/stats/log_histogram.h"
#include "bench/stats/metric.h"

namespace fulgur::bench {

// Use on the loop's thread.
class ClientLag {
 public:
  explicit ClientLag(HttpClient& client) : client_(client) {}
  ~ClientLag() { Stop(); }

  void Start();
  void Stop();

  // A request left this much later than it could have.
  void AddSend(int64_t late_ns) { sends_.Add(static_cast<double>(late_ns) / 1e6); }

  // fulgur_client_lag, fulgur_send_lag (ms) and fulgur_client_cpu (cores, of the loop's thread).
  void AddMetrics(MetricMap& metrics) const;

  double p99_ms() const { return ticks_.count() > 0 ? ticks_.Percentile(99) : 0.0; }

 private:
  void Tick();

  HttpClient& client_;
  std::shared_ptr<bool> running_;  // shared with the timer that may outlive this
  int64_t due_ns_ = 0;
  int64_t started_ns_ = 0;
  int64_t stopped_ns_ = 0;
  int64_t cpu_start_ns_ = 0;
  int64_t cpu_end_ns_ = 0;
  LogHistogram ticks_;
  LogHistogram sends_;
};

}  // namespace fulgur::bench

// How the requests of one cell are sent, and what became of it.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "bench/load/request_body.h"
#include "bench/stats/run_metrics.h"

namespace fulgur::bench {

enum class LoadMode {
  kClosed,       // so many users, each sends when its answer is complete
  kOpen,         // by arrival times that were fixed before
  kSchedule,     // by the time stamps of a trace
  kBurst,        // so many at once, again when all are done
  kUserCentric,  // every user sends in a steady rhythm
};

struct LoadSpec {
  LoadMode mode = LoadMode::kClosed;
  int64_t concurrency = 1;          // conversations at a time; 0: no limit (not for closed loops)
  int64_t prefill_concurrency = 0;  // requests without their first token at a time; 0: no limit
  int64_t warmup_requests = 0;
  int64_t warmup_concurrency = 1;
  bool drain_after_warmup = false;
  // The first sends of a closed loop are spread over one mean latency of the warm-up: otherwise
  // requests of equal length stay in step for ever.
  bool stagger = true;
  std::vector<int64_t> arrivals;       // kOpen: offsets in nanoseconds
  double user_rate = 1.0;              // kUserCentric: requests per second of all users
  std::optional<int64_t> duration_ns;  // no new sends after it
  int64_t grace_ns = 30'000'000'000;   // then what still runs is cancelled
  int64_t ramp_ns = 0;                 // a closed loop's users come one by one
  int64_t timeout_ns = 3'600'000'000'000;
  double cancellation_percent = 0.0;
  int64_t cancellation_delay_ns = 0;
  std::optional<double> failure_limit;  // stop if more than this part fails
  int64_t seed = 42;
};

// Where requests go.
struct Transport {
  size_t num_targets = 1;
  std::vector<std::string> paths;  // of each target
  std::vector<std::pair<std::string, std::string>> headers;
  std::string session_header;  // carries the conversation's id; empty: none
  RequestShape shape;          // for turns whose body depends on earlier answers
};

// Read by a display while the loop's thread writes.
struct LiveCounts {
  std::atomic<int64_t> planned{0};  // requests; 0: not known
  std::atomic<int64_t> in_flight{0};
  std::atomic<int64_t> done{0};
  std::atomic<int64_t> failed{0};
  std::atomic<int64_t> output_tokens{0};
  std::atomic<int64_t> profiling_start_ns{0};  // 0: warm-up
};

struct LoadOutcome {
  RunWindow window;  // of the measured part
  int64_t wall_start_ns = 0;
  int64_t wall_end_ns = 0;
  int64_t warmup_wall_start_ns = 0;  // 0: there was none
  int64_t warmup_wall_end_ns = 0;
  bool began = false;           // the measured part
  bool interrupted = false;     // from outside
  std::string stopped_because;  // ended early: one sentence
  int64_t starved = 0;          // times that a send had to wait for its prompt
};

}  // namespace fulgur::bench

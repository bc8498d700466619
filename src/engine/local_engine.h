// The engine of this process: one thread that owns scheduler, sequence memory and model.
//
// Other threads meet it in a bounded queue of requests and aborts; events leave through the
// requests' sinks. It sleeps while there is nothing to do. A failed step ends all requests with
// kError, and the engine is dead: Health() says why, Submit refuses.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/engine.h"
#include "engine/model_runner.h"
#include "sched/scheduler.h"

namespace fulgur::engine {

struct LocalEngineOptions {
  sched::SchedulerLimits limits;
  int64_t num_pages = 0;  // of 256 tokens; the runner's cache must have as many
  int64_t num_slots = 0;  // at least limits.max_num_seqs
  std::vector<int32_t> eos_tokens;
  // Seeds of requests that bring none: drawn from this number, or from the system.
  std::optional<uint64_t> seed;
  int64_t max_queued_requests = 65536;  // Submit refuses beyond
};

// Errors name the option that is wrong. The engine owns the runner.
absl::StatusOr<std::unique_ptr<Engine>> CreateLocalEngine(LocalEngineOptions options,
                                                          std::unique_ptr<ModelRunner> runner);

}  // namespace fulgur::engine

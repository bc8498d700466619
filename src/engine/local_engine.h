// The engine of this process: one thread that owns scheduler, sequence memory and model.
//
// Other threads meet it in a bounded queue of requests and aborts; events leave through the
// requests' sinks. It sleeps while there is nothing to do. A failed step ends all requests with
// kError, and the engine is dead: Health() says why, Submit refuses.
#pragma once

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "engine/engine.h"
#include "engine/engine_core.h"
#include "engine/model_runner.h"

namespace fulgur::engine {

struct LocalEngineOptions {
  CoreOptions core;
  int64_t max_queued_requests = 65536;  // Submit refuses beyond
};

// Errors name the option that is wrong. The engine owns the runner. Adaptive speculation whose
// costs are not given measures them first, for a few seconds at most.
absl::StatusOr<std::unique_ptr<Engine>> CreateLocalEngine(const LocalEngineOptions& options,
                                                          std::unique_ptr<ModelRunner> runner);

}  // namespace fulgur::engine

// Measures what steps cost on this machine, before the engine takes requests: forward passes by
// rows and context, and drafting by requests and drafts.
#pragma once

#include <chrono>

#include "absl/status/statusor.h"
#include "engine/engine_core.h"
#include "engine/model_runner.h"
#include "sched/cost_model.h"

namespace fulgur::engine {

// Runs made-up steps for about `budget` at most (one step of each kind in any case). Sizes that the
// time did not suffice for are left out. Uses pages and slots of the runner's cache: nothing may be
// in them. Errors are the runner's.
absl::StatusOr<sched::CostTable> MeasureCosts(
    const CoreOptions& options, ModelRunner& runner,
    std::chrono::milliseconds budget = std::chrono::seconds(5));

}  // namespace fulgur::engine

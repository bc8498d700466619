// The `input_config` and `run_info` of an aiperf summary, of all releases.
#pragma once

#include <optional>

#include "bench/results/json_fields.h"
#include "bench/results/run_plan.h"

namespace fulgur::bench {

RunPlan ReadRunPlan(const JsonObject& root);

// The concurrency limit of the profiling phase, or from the command line in the file.
std::optional<int64_t> PlannedConcurrency(const RunPlan& plan);

}  // namespace fulgur::bench

// Results of InferenceX (formerly InferenceMAX): rates per GPU, latencies in seconds.
#pragma once

#include <filesystem>

#include "bench/results/json_fields.h"
#include "bench/results/result.h"

namespace fulgur::bench {

bool IsInferenceX(const JsonObject& root);

// Rates of the whole system are given only where the number of GPUs behind them is in the file:
// a disaggregated run divides output by its decode GPUs alone.
Result ReadInferenceX(const JsonObject& root, const std::filesystem::path& file);

}  // namespace fulgur::bench

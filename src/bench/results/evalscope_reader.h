// Reads evalscope's `perf` results: benchmark_summary.json with benchmark_percentile.json beside it
// (release 1.14).
//
// Its latency ends with the stream, usage message included, and answers without content count as
// successes with a first token after 0 ms.
#pragma once

#include <filesystem>

#include "bench/results/json_fields.h"
#include "bench/results/result.h"

namespace fulgur::bench {

bool IsEvalscopeSummary(const JsonObject& root);
Result ReadEvalscopeSummary(const JsonObject& root, const std::filesystem::path& file);

// The rows of benchmark_percentile.json.
void AddEvalscopePercentiles(const JsonArray& rows, Result& result);

// Both files.
Result ReadEvalscopeFolder(const JsonObject& root, const std::filesystem::path& file);

}  // namespace fulgur::bench

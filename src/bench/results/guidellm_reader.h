// Reads guidellm's benchmarks.json, report version 2 (release 0.8); one benchmark is one result.
//
// guidellm's latency ends with the response and its inter-token latency is weighted by tokens.
// Where the file keeps all its requests, latencies are computed anew in aiperf's meaning from the
// times of the first and last token.
#pragma once

#include <filesystem>
#include <vector>

#include "absl/status/statusor.h"
#include "bench/results/json_fields.h"
#include "bench/results/result.h"

namespace fulgur::bench {

bool IsGuidellm(const JsonObject& root);
absl::StatusOr<std::vector<Result>> ReadGuidellm(const JsonObject& root,
                                                 const std::filesystem::path& file);

}  // namespace fulgur::bench

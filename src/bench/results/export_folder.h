// Writes a result of any tool as an artifact folder of aiperf's form.
#pragma once

#include <filesystem>

#include "absl/status/status.h"
#include "bench/results/result.h"

namespace fulgur::bench {

// Creates the folder with profile_export_aiperf.json and .csv, fulgur_run.json and, if the result
// has requests, profile_export.jsonl.
absl::Status ExportFolder(const Result& result, const std::filesystem::path& folder);

}  // namespace fulgur::bench

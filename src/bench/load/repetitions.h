// What several runs of one cell say together, in the form of aiperf's aggregate file.
#pragma once

#include <filesystem>

#include "absl/status/status.h"
#include "bench/load/run_options.h"

namespace fulgur::bench {

// Where repetition `repetition` of a cell lies, counted from 0: profile_runs/run_0001.
std::filesystem::path RunFolder(const std::filesystem::path& cell, int32_t repetition);

// Reads the summaries of all repetitions below a cell's folder and writes
// aggregate/profile_export_aiperf_aggregate.json: for each metric and statistic mean, standard
// deviation (n - 1), coefficient of variation, standard error and an interval by Student's t. Runs
// that are missing, were interrupted or cannot be read are named in it. Nothing is written without
// a single run.
absl::Status WriteRepetitions(const RunOptions& options, const std::filesystem::path& cell);

}  // namespace fulgur::bench

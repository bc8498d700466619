// fulgur_run.json: what aiperf's files have no place for. The plan, the environment, the phases on
// the wall clock and the findings of lint.
#pragma once

#include <filesystem>
#include <vector>

#include "absl/status/status.h"
#include "bench/results/lint.h"
#include "bench/results/result.h"

namespace fulgur::bench {

inline constexpr std::string_view kRunFormat = "fulgur-run/1";

absl::Status WriteRunFile(const std::filesystem::path& file, const RunPlan& plan, const Cell& cell,
                          const std::vector<LintFinding>& lint);

// Adds what the file knows to a result; what cannot be read becomes one of its problems.
void ReadRunFile(const std::filesystem::path& file, Result& result);

}  // namespace fulgur::bench

// Reads what a report needs besides the comparison: requests of the cells, scores of accuracy runs.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "bench/report/report_input.h"

namespace fulgur::bench {

// The requests of every cell whose file is still where the comparison says, seen from the current
// folder or from `folder`. Cells without requests are left out.
std::vector<CellRequests> ReadRequests(const Comparison& comparison,
                                       const std::filesystem::path& folder);

// The time slices beside the results of the cells, where there are any.
std::vector<CellSlices> ReadSlices(const Comparison& comparison,
                                   const std::filesystem::path& folder);

// A result of `fulgur eval` (format fulgur-accuracy/1).
absl::StatusOr<AccuracyScore> ReadAccuracy(const std::string& system,
                                           const std::filesystem::path& file);

}  // namespace fulgur::bench

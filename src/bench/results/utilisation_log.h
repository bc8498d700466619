// Reads utilisation logs: the columns of the sampling script that Ascend deployments use, the JSON
// lines of `fulgur sample`, and the device telemetry of aiperf (gpu_telemetry_export.jsonl).
#pragma once

#include <filesystem>
#include <string_view>

#include "absl/status/statusor.h"
#include "bench/results/utilisation.h"

namespace fulgur::bench {

// Any form, told by its lines. Broken lines are skipped and counted; an error if none is
// left. A clock that goes back is told in `problems`, and the samples are put in order.
absl::StatusOr<UtilisationLog> ParseUtilisationLog(std::string_view text, std::string_view source);
absl::StatusOr<UtilisationLog> ReadUtilisationLog(const std::filesystem::path& file);

// Statistics of the samples with begin_ns <= time <= end_ns, weighted by their intervals. Empty
// statistics if there is none.
UtilisationSummary SummarizeUtilisation(const UtilisationLog& log, int64_t begin_ns,
                                        int64_t end_ns);

// The same over the whole log, with the series for a chart.
UtilisationSummary SummarizeUtilisation(const UtilisationLog& log);

}  // namespace fulgur::bench

// Reads aiperf's result files of every release: the summary, the requests beside it, and our own
// fulgur_run.json if there is one.
//
// The schema version in a file does not tell everything; what a file holds is decided by its keys.
// Format: github.com/ai-dynamo/aiperf, schemas without a version (0.1) to 1.5.
#pragma once

#include <filesystem>
#include <string_view>

#include "absl/status/statusor.h"
#include "bench/results/json_fields.h"
#include "bench/results/result.h"
#include "bench/stats/time_slice.h"

namespace fulgur::bench {

// Whether the root has the blocks that every summary has.
bool IsAiperfSummary(const JsonObject& root);

// Reads a summary. `file` names it in messages; its neighbours are not opened.
Result ReadAiperfSummary(const JsonObject& root, const std::filesystem::path& file);

// The same with requests (profile_export.jsonl) and fulgur_run.json from the summary's folder.
Result ReadAiperfFolder(const JsonObject& root, const std::filesystem::path& file);

// One line of profile_export.jsonl.
absl::StatusOr<RequestLine> ParseRequestLine(std::string_view line);

// All lines; a broken one is skipped, counted and told in `result.problems`.
void ReadRequestLines(std::string_view text, std::string_view source, Result& result);

// Reads profile_export_aiperf_timeslices.json.
absl::StatusOr<std::vector<TimeSlice>> ReadTimeSlices(const std::filesystem::path& file);

}  // namespace fulgur::bench

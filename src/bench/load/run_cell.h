// Runs one cell and writes its folder.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "bench/load/cell_plan.h"
#include "bench/load/display.h"
#include "bench/load/recorder.h"
#include "bench/stats/cell.h"

namespace fulgur::bench {

struct CellResult {
  Cell cell;
  RunPlan plan;
  std::vector<std::string> invalid_reasons;  // why no number of the cell should be quoted
  std::vector<std::string> notes;            // what a reader of the numbers should know
  std::vector<VllmLine> lines;               // for vLLM's result file
  int64_t valid_requests = 0;
  int64_t failed_requests = 0;
  bool interrupted = false;
  bool complete = true;  // everything planned was sent and answered

  bool valid() const { return invalid_reasons.empty(); }
};

// A file that cannot be written is an error; whatever the server does is a result.
absl::StatusOr<CellResult> RunCell(const RunOptions& options, const CellPlan& plan,
                                   const Surroundings& surroundings, HttpClient& client,
                                   const std::function<bool()>& interrupted);

// The summary in aiperf's form below a cell's folder.
std::filesystem::path SummaryFile(const RunOptions& options, const std::filesystem::path& folder);

// Whether the folder holds the whole result of this very plan.
bool IsDone(const CellPlan& plan);

}  // namespace fulgur::bench

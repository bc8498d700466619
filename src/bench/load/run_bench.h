// A whole run: looks at the server and the tokenizer, then measures cell after cell.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "bench/load/run_cell.h"
#include "bench/load/run_options.h"

namespace fulgur::bench {

struct RunSummary {
  std::vector<CellResult> cells;
  std::vector<std::string> failed_cells;  // that could not even be run, one sentence each
  int64_t skipped = 0;                    // were there already
  bool interrupted = false;

  // Everything that was asked for was measured, and nothing failed.
  bool complete() const;
};

struct RunHooks {
  std::function<bool()> interrupted;
  std::function<void(const std::string&)> say;     // a line for the user
  std::function<void(const CellResult&)> on_cell;  // after each
};

// Runs one cell with a client of its own.
absl::StatusOr<CellResult> MeasureCell(const RunOptions& options, const CellPlan& plan,
                                       const Surroundings& surroundings, const RunHooks& hooks);

// Errors: nothing could be measured at all (no server, no tokenizer, an impossible plan).
absl::StatusOr<RunSummary> RunBench(const RunOptions& options, const RunHooks& hooks);

}  // namespace fulgur::bench

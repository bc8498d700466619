// The runs of a trial, one after the other: base, variant, base, next variant ... base.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "bench/load/run_bench.h"
#include "bench/trial/decide.h"
#include "bench/trial/trial_plan.h"

namespace fulgur::bench {

struct SeriesOptions {
  std::filesystem::path folder;  // holds runs/<nn>-<name>/ and logs/<nn>-<name>.log
  bool leave_base = true;        // at the end the base runs; false: nothing does
};

struct SeriesHooks {
  std::function<bool()> interrupted;
  std::function<void(const std::string&)> say;  // a line for the user
  // Sends the load to the server that is up and writes its results into the folder.
  std::function<absl::StatusOr<RunSummary>(const std::filesystem::path&)> measure;
};

struct SeriesResult {
  std::vector<MeasuredRun> runs;
  std::vector<std::string> names;  // of the runs: "01-base", "02-seqs64"
  bool interrupted = false;
  absl::Status ended;  // why the series ended early, or why the base could not be brought back
};

// Names of the servers in the order of measurement, "" for the base. Every other round goes through
// the variants backwards.
std::vector<std::string> SeriesOrder(const TrialPlan& plan);

// Measures one after the other. A variant that does not start is recorded and the series goes on.
// Whatever happens, the base is brought back at the end (or, if so asked, everything stopped).
// Errors: the address is taken before the first start, or the base never came up.
absl::StatusOr<SeriesResult> RunSeries(const TrialPlan& plan, const SeriesOptions& options,
                                       const SeriesHooks& hooks);

}  // namespace fulgur::bench

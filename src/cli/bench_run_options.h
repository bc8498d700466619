// From the flags of `fulgur bench run` to what the load generator is asked to do.
#pragma once

#include <span>
#include <string>

#include "absl/status/statusor.h"
#include "bench/load/run_options.h"
#include "cli/flag_values.h"

namespace fulgur::cli {

// Whose defaults apply where the flags of several programs differ.
enum class BenchDialect {
  kRun,     // ours
  kAiperf,  // `aiperf profile`: nothing is corrected
  kVllm,    // `vllm bench serve`
};

// Errors are one sentence that names the flag.
absl::StatusOr<bench::RunOptions> BuildRunOptions(const FlagValues& values, BenchDialect dialect);

// The command for result files: values of --api-key and --header are left out.
std::string RedactedCommand(const std::string& start, std::span<const std::string> args);

}  // namespace fulgur::cli

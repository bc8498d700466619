// --speculative-config and its short forms: what is drafted, by what, and how it is verified.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "cli/flag_values.h"
#include "engine/speculation.h"
#include "model/config.h"

namespace fulgur::cli {

// As the flags say, before any file is looked at.
struct SpeculativeConfig {
  bool enabled = false;
  std::optional<model::DrafterKind> method;  // none: what the checkpoint carries
  std::optional<int64_t> num_tokens;         // none: what the drafter was trained for
  std::string model;                         // folder of the drafter; empty: the checkpoint itself
  bool adaptive = true;
  sample::VerifyMethod verification = sample::VerifyMethod::kExactMatch;
  std::vector<double> synthetic_rates;     // benchmarks
  std::optional<double> synthetic_length;  // the same as a mean length, the last token included
  std::vector<std::string> notes;          // what has no effect, and why
};

// Errors are one sentence with flag and key, what was found and what is accepted.
absl::StatusOr<SpeculativeConfig> ReadSpeculativeConfig(const FlagValues& values);

// What the engine runs with, for a drafter that was trained for `trained` drafts. Adds to the notes
// if the number is not the one that was asked for.
engine::SpeculationOptions ResolveSpeculation(SpeculativeConfig& config, model::DrafterKind drafter,
                                              int64_t trained);

// One line for people.
std::string DescribeSpeculation(const engine::SpeculationOptions& options,
                                model::DrafterKind drafter);

}  // namespace fulgur::cli

// Single-factor trials: a file of what was changed on top of a base, with the outcome.
//
// {"format": "fulgur-trials/1", "trials": [{"id", "change", "tag", "delta_percent", "errors",
//  "decision", "reason"}]}
#pragma once

#include <filesystem>
#include <vector>

#include "absl/status/statusor.h"
#include "bench/results/comparison.h"
#include "bench/results/json_fields.h"

namespace fulgur::bench {

inline constexpr std::string_view kTrialsFormat = "fulgur-trials/1";

absl::StatusOr<std::vector<Trial>> ReadTrials(const std::filesystem::path& file);

// One entry of the list.
Trial TrialFromJson(const JsonObject& object);

}  // namespace fulgur::bench

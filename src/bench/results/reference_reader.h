// Reads reference files: numbers that somebody published, with where they are from.
//
// {"format": "fulgur-reference/1", "source": "...", "devices": 16, "environment": {...},
//  "metrics": {"<aiperf tag>.<avg|p50|...>": {"<scenario>": {"<concurrency>": number}}},
//  "scenarios": [{"id", "label": {"en", "zh"}, "input_config", "run_info"}],   (as aiperf has them)
//  "utilisation": {"samples", "busy_avg", ...}}
// A combination without a number was not measured.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "bench/results/json_fields.h"
#include "bench/results/result.h"
#include "bench/results/utilisation.h"

namespace fulgur::bench {

inline constexpr std::string_view kReferenceFormat = "fulgur-reference/1";

// What a reference says of its system as a whole.
struct ReferenceFacts {
  std::string source;
  std::optional<int64_t> devices;
  std::map<std::string, std::string> environment;
  std::map<std::string, std::map<std::string, std::string>> labels;  // scenario -> language -> text
  std::optional<UtilisationSummary> utilisation;
};

ReferenceFacts ReadReferenceFacts(const JsonObject& root);

// One result for each scenario and concurrency with a number.
absl::StatusOr<std::vector<Result>> ReadReference(const JsonObject& root,
                                                  const std::filesystem::path& file);

}  // namespace fulgur::bench

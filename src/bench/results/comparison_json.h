// A comparison as a JSON file, so that report, workbook and tests can be made without the raw
// results.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "bench/results/comparison.h"

namespace fulgur::bench {

// Pretty-printed; absent values are left out, never null.
std::string ComparisonToJson(const Comparison& comparison);

// Reads what ComparisonToJson writes; unknown keys are ignored.
absl::StatusOr<Comparison> ComparisonFromJson(std::string_view text);

absl::Status WriteComparison(const Comparison& comparison, const std::filesystem::path& file);
absl::StatusOr<Comparison> ReadComparison(const std::filesystem::path& file);

}  // namespace fulgur::bench

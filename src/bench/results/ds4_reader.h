// Tables of ds4-bench, which times an engine with a single stream at growing context lengths.
#pragma once

#include <filesystem>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "bench/results/result.h"

namespace fulgur::bench {

// Whether a text begins with the table's header.
bool IsDs4Table(std::string_view text);

// One result a row: scenario "ctx4096" at concurrency 1. The table knows rates of the prompt and of
// the answer, no time to first token. Rows that are broken are told in the first result's problems.
absl::StatusOr<std::vector<Result>> ReadDs4Table(std::string_view text,
                                                 const std::filesystem::path& file);

}  // namespace fulgur::bench

// Reads AISBench's performance results: <dataset>.json with common metrics and <dataset>.csv with
// the distributions (release 3.1). Values carry their unit in the text: "1240.1 token/s".
#pragma once

#include <filesystem>
#include <string_view>

#include "absl/status/status.h"
#include "bench/results/json_fields.h"
#include "bench/results/result.h"

namespace fulgur::bench {

bool IsAisbench(const JsonObject& root);
Result ReadAisbenchSummary(const JsonObject& root, const std::filesystem::path& file);

// The table of distributions. Unknown rows and columns are ignored.
absl::Status AddAisbenchTable(std::string_view csv, std::string_view source, Result& result);

// Both files.
Result ReadAisbenchFolder(const JsonObject& root, const std::filesystem::path& file);

}  // namespace fulgur::bench

// Reads result files of every load generator that is known here, by what is in them.
#pragma once

#include <filesystem>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "bench/results/result.h"

namespace fulgur::bench {

// All results in one file; guidellm, SGLang, InferenceX and ds4-bench keep several in one. Errors
// name the file and say what it is instead: empty, cut off, not JSON, a file of a known tool that
// holds no result, or unknown. What could be read of a damaged file is returned, with `problems`
// telling the rest.
absl::StatusOr<std::vector<Result>> ReadResultFile(const std::filesystem::path& file);

// The same on a text; files beside it are not opened. `file` names it in messages.
absl::StatusOr<std::vector<Result>> ParseResults(std::string_view text,
                                                 const std::filesystem::path& file);

// "aiperf", "vLLM bench", "SGLang", "guidellm", "evalscope", "AISBench", "InferenceX",
// "ds4-bench", "reference".
std::string_view KindName(ResultKind kind);

}  // namespace fulgur::bench

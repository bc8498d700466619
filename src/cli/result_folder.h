// The folder of a command that runs others: their results and their logs.
#pragma once

#include <filesystem>

#include "absl/status/status.h"

namespace fulgur::cli {

// Makes the folder and, below it, `logs`. One that holds something already is an error, which names
// the flag --out.
absl::Status PrepareResultFolder(const std::filesystem::path& folder);

}  // namespace fulgur::cli

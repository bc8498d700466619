// Whole files at once.
#pragma once

#include <filesystem>
#include <string_view>

#include "absl/status/status.h"

namespace fulgur::bench {

// Writes beside the file and renames, so that no reader ever sees half of it.
absl::Status WriteTextFile(const std::filesystem::path& file, std::string_view text);

}  // namespace fulgur::bench

#include "cli/result_folder.h"

#include "fmt/format.h"

namespace fulgur::cli {

namespace fs = std::filesystem;

absl::Status PrepareResultFolder(const fs::path& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (!error && !fs::is_empty(folder, error)) {
    return absl::AlreadyExistsError(
        fmt::format("{} is not empty; name another folder with --out", folder.string()));
  }
  if (!error) fs::create_directories(folder / "logs", error);
  if (!error) return absl::OkStatus();
  return absl::UnavailableError(
      fmt::format("the folder {} could not be made: {}", folder.string(), error.message()));
}

}  // namespace fulgur::cli

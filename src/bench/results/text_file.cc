#include "bench/results/text_file.h"

#include <cerrno>
#include <cstring>
#include <fstream>

#include "fmt/format.h"

namespace fulgur::bench {

absl::Status WriteTextFile(const std::filesystem::path& file, std::string_view text) {
  std::filesystem::path draft = file;
  draft += ".part";
  {
    std::ofstream stream(draft, std::ios::binary);
    stream.write(text.data(), static_cast<std::streamsize>(text.size()));
    stream.close();
    if (!stream) {
      return absl::UnavailableError(
          fmt::format("{} cannot be written: {}", file.string(), std::strerror(errno)));
    }
  }
  std::error_code error;
  std::filesystem::rename(draft, file, error);
  if (error) {
    return absl::UnavailableError(
        fmt::format("{} cannot be written: {}", file.string(), error.message()));
  }
  return absl::OkStatus();
}

}  // namespace fulgur::bench

// The file that names a running sampler, so that it can be stopped: exactly that process, never
// another that got its number later.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace fulgur::bench {

// util-TAG.pid beside the log.
std::filesystem::path SamplePidPath(const std::filesystem::path& folder, std::string_view tag);

// Written for this process, removed on destruction.
class PidFile {
 public:
  // ALREADY_EXISTS if the file names a process that still runs; a stale file is replaced.
  static absl::StatusOr<PidFile> Create(const std::filesystem::path& path);
  PidFile(PidFile&& other) noexcept;
  PidFile& operator=(PidFile&&) = delete;
  ~PidFile();

 private:
  explicit PidFile(std::filesystem::path path) : path_(std::move(path)) {}

  std::filesystem::path path_;
};

// Sends SIGTERM to the process that the file names and waits until it has ended; its number.
// NOT_FOUND if there is no file or its process has ended, DEADLINE_EXCEEDED after `limit`.
absl::StatusOr<pid_t> StopProcessOf(const std::filesystem::path& path, absl::Duration limit);

}  // namespace fulgur::bench

// Runs code that a model wrote: only where the user allowed it, without network, without the
// user's files, and with limits on everything.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <utility>

#include "absl/status/statusor.h"

namespace fulgur::bench {

struct SandboxLimits {
  std::chrono::milliseconds wall{3000};
  int64_t cpu_seconds = 5;
  int64_t memory_bytes = int64_t{1} << 30;
  int64_t file_bytes = int64_t{1} << 20;
};

class Sandbox {
 public:
  // Finds bubblewrap or unshare, and python3, and tries them. The error says what to install.
  static absl::StatusOr<Sandbox> Create(const SandboxLimits& limits);

  // Whether the Python program ended by itself, in time, with exit code 0.
  absl::StatusOr<bool> RunProgram(const std::string& program) const;

 private:
  Sandbox(const SandboxLimits& limits, std::string tool)
      : limits_(limits), tool_(std::move(tool)) {}

  SandboxLimits limits_;
  std::string tool_;  // "bwrap" or "unshare"
};

}  // namespace fulgur::bench

// This program, run once more as a process of its own with its output in a file.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace fulgur::cli {

class BackgroundProgram {
 public:
  // `words` follow the program's name. Standard output and error go to `log`, which is replaced.
  static absl::StatusOr<std::unique_ptr<BackgroundProgram>> Start(
      const std::vector<std::string>& words, const std::filesystem::path& log);
  ~BackgroundProgram();  // Stop()

  BackgroundProgram(const BackgroundProgram&) = delete;
  BackgroundProgram& operator=(const BackgroundProgram&) = delete;

  // Waits for its end; the exit code, or 128 + signal.
  int Wait();
  // Asks it to end and waits for that; kills it if it takes longer than ten seconds.
  int Stop();
  // Whether it still runs.
  bool Running();

 private:
  explicit BackgroundProgram(pid_t pid) : pid_(pid) {}

  // Collects the end if it has come, or if told to wait for it.
  void Collect(bool wait);

  const pid_t pid_;
  bool ended_ = false;
  int exit_code_ = 0;
};

}  // namespace fulgur::cli

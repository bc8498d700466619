// The server under trial: started and stopped by the operator's own commands.
//
// The start command gets a session of its own, so that a Ctrl-C for this program does not reach it
// and that the server outlives us. One thread only.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "bench/load/http_client.h"
#include "bench/trial/trial_plan.h"

namespace fulgur::bench {

class ServerControl {
 public:
  static absl::StatusOr<std::unique_ptr<ServerControl>> Create(ServerCommands commands);

  // Runs the start command with `settings` in its environment and its output in `log`, and waits
  // until the health path answers 200. CANCELLED if interrupted; other errors end with the log's
  // last lines. After an error something may still run: call Stop().
  absl::Status Start(const Settings& settings, const std::filesystem::path& log,
                     const std::function<bool()>& interrupted);

  // Runs the stop command, if there is one, then ends what the start command left running, and
  // waits until the address is silent. An error if it is not.
  absl::Status Stop();

  // Whether anything answers HTTP at the address.
  bool Answers();

 private:
  ServerControl(ServerCommands commands, std::unique_ptr<HttpClient> client)
      : commands_(std::move(commands)), client_(std::move(client)) {}

  absl::StatusOr<int> HealthStatus();
  absl::Status RunStopCommand();
  void CollectEnd();
  bool GroupLives() const;

  const ServerCommands commands_;
  const std::unique_ptr<HttpClient> client_;
  Settings settings_;
  std::filesystem::path log_;
  pid_t leader_ = 0;  // of the start command's session; 0: none was started
  std::optional<int> exit_code_;
};

// The last lines of a log, at most `lines`, each cut to a readable length.
std::string LogTail(const std::filesystem::path& log, int lines);

}  // namespace fulgur::bench

#include "bench/trial/server_control.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <deque>
#include <fstream>
#include <thread>
#include <utility>
#include <vector>

#include "base/status_macros.h"
#include "bench/load/clock.h"
#include "fmt/format.h"
#include "fmt/ranges.h"

namespace fulgur::bench {
namespace {

namespace fs = std::filesystem;

constexpr auto kGlance = std::chrono::milliseconds(100);
constexpr int64_t kAnswerLimitNs = 2'000'000'000;
constexpr double kLastPatienceS = 10.0;  // after SIGKILL
constexpr int kTailLines = 20;
constexpr size_t kLineLength = 300;

int64_t DeadlineIn(double seconds) { return MonotonicNs() + static_cast<int64_t>(seconds * 1e9); }

// Our environment with `settings` on top.
std::vector<std::string> EnvironmentWith(const Settings& settings) {
  std::vector<std::string> entries;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    if (!settings.contains(std::string(text.substr(0, text.find('='))))) entries.emplace_back(text);
  }
  for (const auto& [name, value] : settings) entries.push_back(fmt::format("{}={}", name, value));
  return entries;
}

std::vector<char*> Pointers(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  pointers.reserve(texts.size() + 1);
  for (std::string& text : texts) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

// Runs `command` in bash as the leader of a session, with no signal blocked.
absl::StatusOr<pid_t> Spawn(const std::string& command, const Settings& settings,
                            const fs::path& log) {
  std::vector<std::string> words = {"bash", "-c", command};
  std::vector<std::string> environment = EnvironmentWith(settings);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, log.c_str(),
                                   O_WRONLY | O_CREAT | O_APPEND, 0644);
  posix_spawn_file_actions_adddup2(&actions, STDOUT_FILENO, STDERR_FILENO);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t none;
  sigemptyset(&none);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK);
  pid_t pid = 0;
  const int error = posix_spawnp(&pid, "bash", &actions, &attributes, Pointers(words).data(),
                                 Pointers(environment).data());
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  if (error == 0) return pid;
  return absl::UnavailableError(
      fmt::format("the command `{}` could not be run: {}", command, std::strerror(error)));
}

// The exit code once it has ended, 128 + signal if a signal ended it.
std::optional<int> EndOf(pid_t pid) {
  int status = 0;
  pid_t found = 0;
  do {
    found = waitpid(pid, &status, WNOHANG);
  } while (found < 0 && errno == EINTR);
  if (found == 0) return std::nullopt;
  if (found < 0) return 0;  // somebody else has collected it
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

std::string WithTail(const std::string& sentence, const fs::path& log) {
  const std::string tail = LogTail(log, kTailLines);
  if (tail.empty()) return fmt::format("{}; its log {} is empty", sentence, log.string());
  return fmt::format("{}; its log {} ends with:\n{}", sentence, log.string(), tail);
}

}  // namespace

std::string LogTail(const fs::path& log, int lines) {
  std::ifstream file(log, std::ios::binary);
  std::deque<std::string> last;
  for (std::string line; std::getline(file, line);) {
    if (line.size() > kLineLength) line = line.substr(0, kLineLength) + " ...";
    last.push_back(std::move(line));
    if (last.size() > static_cast<size_t>(lines)) last.pop_front();
  }
  return fmt::format("{}", fmt::join(last, "\n"));
}

absl::StatusOr<std::unique_ptr<ServerControl>> ServerControl::Create(ServerCommands commands) {
  ASSIGN_OR_RETURN(HttpTarget target, ParseUrl(commands.url));
  ASSIGN_OR_RETURN(auto client,
                   HttpClient::Create({std::move(target)}, {.reuse = ConnectionReuse::kNever}));
  return std::unique_ptr<ServerControl>(new ServerControl(std::move(commands), std::move(client)));
}

absl::StatusOr<int> ServerControl::HealthStatus() {
  HttpCall call;
  call.method = "GET";
  call.path = commands_.health;
  call.timeout_ns = kAnswerLimitNs;
  ASSIGN_OR_RETURN(const SimpleAnswer answer, Fetch(*client_, std::move(call)));
  return answer.status;
}

bool ServerControl::Answers() { return HealthStatus().ok(); }

void ServerControl::CollectEnd() {
  if (leader_ != 0 && !exit_code_) exit_code_ = EndOf(leader_);
}

bool ServerControl::GroupLives() const { return leader_ != 0 && kill(-leader_, 0) == 0; }

absl::Status ServerControl::Start(const Settings& settings, const fs::path& log,
                                  const std::function<bool()>& interrupted) {
  settings_ = settings;
  log_ = log;
  exit_code_.reset();
  ASSIGN_OR_RETURN(leader_, Spawn(commands_.start, settings_, log_));
  const int64_t end = DeadlineIn(commands_.start_limit_s);
  std::string last = "no answer";
  while (MonotonicNs() < end) {
    if (interrupted()) return absl::CancelledError("interrupted while the server started");
    CollectEnd();
    if (exit_code_.value_or(0) != 0) {
      return absl::UnavailableError(
          WithTail(fmt::format("the start command ended with {}", *exit_code_), log_));
    }
    const auto status = HealthStatus();
    if (status.ok() && *status == 200) return absl::OkStatus();
    last = status.ok() ? fmt::format("status {}", *status) : std::string(status.status().message());
    std::this_thread::sleep_for(kGlance);
  }
  return absl::DeadlineExceededError(
      WithTail(fmt::format("the server was not ready within {:g} s ({} of {}: {})",
                           commands_.start_limit_s, commands_.health, commands_.url, last),
               log_));
}

absl::Status ServerControl::RunStopCommand() {
  if (commands_.stop.empty()) return absl::OkStatus();
  const fs::path log = log_.empty() ? fs::path("/dev/null") : log_;
  ASSIGN_OR_RETURN(const pid_t pid, Spawn(commands_.stop, settings_, log));
  const int64_t end = DeadlineIn(commands_.stop_limit_s);
  std::optional<int> code;
  while (!(code = EndOf(pid)) && MonotonicNs() < end) std::this_thread::sleep_for(kGlance);
  if (code) return absl::OkStatus();  // whatever it says, what counts is whether the server is gone
  kill(-pid, SIGKILL);
  waitpid(pid, nullptr, 0);
  return absl::DeadlineExceededError(
      fmt::format("the stop command did not end within {:g} s", commands_.stop_limit_s));
}

absl::Status ServerControl::Stop() {
  absl::Status stopped = RunStopCommand();
  const auto wait_for_end = [this](double limit_s) {
    const int64_t end = DeadlineIn(limit_s);
    for (;;) {
      CollectEnd();
      if (!GroupLives() && !Answers()) return true;
      if (MonotonicNs() >= end) return false;
      std::this_thread::sleep_for(kGlance);
    }
  };
  if (GroupLives()) kill(-leader_, SIGTERM);
  bool gone = wait_for_end(commands_.stop_limit_s);
  if (!gone && GroupLives()) {
    kill(-leader_, SIGKILL);
    gone = wait_for_end(kLastPatienceS);
  }
  CollectEnd();
  if (gone || !Answers()) return absl::OkStatus();
  if (!stopped.ok()) return stopped;
  return absl::UnavailableError(fmt::format(
      "{} still answers {:g} s after it was told to stop; the plan needs a \"stop\" command that "
      "ends the server",
      commands_.url, commands_.stop_limit_s));
}

}  // namespace fulgur::bench

#include "cli/background_program.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <thread>

#include "fmt/format.h"

namespace fulgur::cli {
namespace {

constexpr char kThisProgram[] = "/proc/self/exe";
constexpr auto kPatience = std::chrono::seconds(10);
constexpr auto kGlance = std::chrono::milliseconds(20);

}  // namespace

absl::StatusOr<std::unique_ptr<BackgroundProgram>> BackgroundProgram::Start(
    const std::vector<std::string>& words, const std::filesystem::path& log) {
  std::vector<std::string> texts = {"fulgur"};
  texts.insert(texts.end(), words.begin(), words.end());
  std::vector<char*> arguments;
  arguments.reserve(texts.size() + 1);
  for (std::string& text : texts) arguments.push_back(text.data());
  arguments.push_back(nullptr);

  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, log.c_str(),
                                   O_WRONLY | O_CREAT | O_TRUNC, 0644);
  posix_spawn_file_actions_adddup2(&actions, STDOUT_FILENO, STDERR_FILENO);
  pid_t pid = 0;
  const int error = posix_spawn(&pid, kThisProgram, &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) {
    return absl::UnavailableError(fmt::format("fulgur {} could not be started: {}",
                                              words.empty() ? "" : words.front(),
                                              std::strerror(error)));
  }
  return std::unique_ptr<BackgroundProgram>(new BackgroundProgram(pid));
}

BackgroundProgram::~BackgroundProgram() { Stop(); }

void BackgroundProgram::Collect(bool wait) {
  if (ended_) return;
  int status = 0;
  pid_t found = 0;
  do {
    found = waitpid(pid_, &status, wait ? 0 : WNOHANG);
  } while (found < 0 && errno == EINTR);
  if (found == 0) return;
  ended_ = true;
  if (found == pid_) {
    exit_code_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }
}

int BackgroundProgram::Wait() {
  Collect(/*wait=*/true);
  return exit_code_;
}

bool BackgroundProgram::Running() {
  Collect(/*wait=*/false);
  return !ended_;
}

int BackgroundProgram::Stop() {
  if (!Running()) return exit_code_;
  kill(pid_, SIGTERM);
  const auto end = std::chrono::steady_clock::now() + kPatience;
  while (Running() && std::chrono::steady_clock::now() < end) std::this_thread::sleep_for(kGlance);
  if (Running()) kill(pid_, SIGKILL);
  return Wait();
}

}  // namespace fulgur::cli

#include "bench/sample/child_process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/time/clock.h"
#include "base/status_macros.h"
#include "fmt/format.h"

namespace fulgur::bench {
namespace {

constexpr size_t kMaxLineBytes = 1 << 16;  // a tool that never ends its line is not read for ever

// A pseudo terminal; `name` is the side for the child.
absl::StatusOr<int> OpenTerminal(std::string& name) {
  const int terminal = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
  char buffer[128];
  if (terminal < 0 || grantpt(terminal) != 0 || unlockpt(terminal) != 0 ||
      ptsname_r(terminal, buffer, sizeof(buffer)) != 0) {
    const std::string reason = std::strerror(errno);
    if (terminal >= 0) close(terminal);
    return absl::UnavailableError("no pseudo terminal for a tool: " + reason);
  }
  name = buffer;
  return terminal;
}

// The child leads a session of its own, so that the terminal becomes its controlling one, and does
// not inherit the signals we block.
int Spawn(const std::vector<std::string>& argv, const std::string& terminal, pid_t& pid) {
  std::vector<char*> words;
  words.reserve(argv.size() + 1);
  for (const std::string& word : argv) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, terminal.c_str(), O_RDWR, 0);
  posix_spawn_file_actions_adddup2(&actions, STDIN_FILENO, STDOUT_FILENO);
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t none;
  sigemptyset(&none);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK);
  const int error = posix_spawnp(&pid, words[0], &actions, &attributes, words.data(), environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  return error;
}

}  // namespace

absl::StatusOr<std::unique_ptr<ChildProcess>> ChildProcess::Start(
    const std::vector<std::string>& argv) {
  std::string name;
  ASSIGN_OR_RETURN(const int terminal, OpenTerminal(name));
  pid_t pid = 0;
  if (const int error = Spawn(argv, name, pid); error != 0) {
    close(terminal);
    return absl::NotFoundError(fmt::format("cannot run {}: {}", argv[0], std::strerror(error)));
  }
  return std::unique_ptr<ChildProcess>(new ChildProcess(pid, terminal));
}

ChildProcess::~ChildProcess() {
  Terminate();
  for (int i = 0; i < 100; ++i) {
    if (waitpid(pid_, nullptr, WNOHANG) != 0) break;
    if (i == 50) kill(pid_, SIGKILL);
    absl::SleepFor(absl::Milliseconds(10));
  }
  close(terminal_);
}

void ChildProcess::Terminate() { kill(pid_, SIGTERM); }

bool ChildProcess::TakeLine(std::string& line) {
  size_t end = buffer_.find('\n');
  if (end == std::string::npos) {
    if (buffer_.size() < kMaxLineBytes && !(ended_ && !buffer_.empty())) return false;
    end = buffer_.size();
  }
  line = buffer_.substr(0, end);
  buffer_.erase(0, end + 1);
  while (line.ends_with('\r')) line.pop_back();
  return true;
}

absl::StatusOr<std::string> ChildProcess::ReadLine(absl::Duration limit) {
  const absl::Time deadline = absl::Now() + limit;
  std::string line;
  while (!TakeLine(line)) {
    if (ended_) return absl::OutOfRangeError("the tool has ended");
    const auto left = absl::ToInt64Milliseconds(deadline - absl::Now());
    pollfd ready{terminal_, POLLIN, 0};
    const int num_ready =
        poll(&ready, 1, static_cast<int>(std::clamp<int64_t>(left, 0, 1'000'000)));
    if (num_ready == 0) return absl::DeadlineExceededError("the tool printed nothing in time");
    char bytes[4096];
    const ssize_t count = num_ready < 0 ? -1 : read(terminal_, bytes, sizeof(bytes));
    if (count > 0) {
      buffer_.append(bytes, static_cast<size_t>(count));
    } else if (count == 0 || errno != EINTR) {
      ended_ = true;  // EIO once the child's side is closed
    }
  }
  return line;
}

absl::StatusOr<std::string> OutputOf(const std::vector<std::string>& argv, absl::Duration limit) {
  ASSIGN_OR_RETURN(const auto child, ChildProcess::Start(argv));
  const absl::Time deadline = absl::Now() + limit;
  std::string text;
  while (true) {
    auto line = child->ReadLine(deadline - absl::Now());
    if (absl::IsOutOfRange(line.status())) return text;
    if (!line.ok()) {
      return absl::DeadlineExceededError(
          fmt::format("{} took more than {}", argv[0], absl::FormatDuration(limit)));
    }
    text += *line + "\n";
  }
}

}  // namespace fulgur::bench

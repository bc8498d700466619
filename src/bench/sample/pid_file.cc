#include "bench/sample/pid_file.h"

#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <utility>

#include "base/status_macros.h"
#include "bench/sample/host_text.h"
#include "bench/sample/text_scan.h"
#include "fmt/format.h"

namespace fulgur::bench {
namespace {

namespace fs = std::filesystem;

std::string BootId() { return std::string(Trimmed(FileText("/proc/sys/kernel/random/boot_id"))); }

// What names a process for good: number, start time and boot. Empty if there is none.
std::string IdentityOf(pid_t pid) {
  const auto stat = ParseProcessStat(FileText(fmt::format("/proc/{}/stat", pid)));
  return stat ? fmt::format("{} {} {}", pid, stat->start_jiffies, BootId()) : "";
}

// A handle of a process, which keeps its meaning when the number is used again.
class ProcessHandle {
 public:
  explicit ProcessHandle(pid_t pid) : handle_(static_cast<int>(syscall(SYS_pidfd_open, pid, 0))) {}
  ~ProcessHandle() {
    if (handle_ >= 0) close(handle_);
  }
  ProcessHandle(const ProcessHandle&) = delete;
  ProcessHandle& operator=(const ProcessHandle&) = delete;

  bool valid() const { return handle_ >= 0; }
  bool Signal(int signal) const {
    return syscall(SYS_pidfd_send_signal, handle_, signal, nullptr, 0) == 0;
  }
  bool WaitForEnd(absl::Duration limit) const {
    pollfd ended{handle_, POLLIN, 0};
    return poll(&ended, 1, static_cast<int>(absl::ToInt64Milliseconds(limit))) > 0;
  }

 private:
  const int handle_;
};

}  // namespace

fs::path SamplePidPath(const fs::path& folder, std::string_view tag) {
  return folder / fmt::format("util-{}.pid", tag);
}

absl::StatusOr<PidFile> PidFile::Create(const fs::path& path) {
  std::error_code ignored;
  fs::create_directories(path.parent_path(), ignored);
  const std::string old(Trimmed(FileText(path)));
  const auto words = WordsOf(old);
  const auto pid = words.empty() ? std::nullopt : WholeNumber<pid_t>(words[0]);
  if (pid && old == IdentityOf(*pid)) {
    return absl::AlreadyExistsError(
        fmt::format("process {} of {} still runs; stop it first", *pid, path.string()));
  }
  std::ofstream file(path, std::ios::trunc);
  file << IdentityOf(getpid()) << "\n" << std::flush;
  if (!file) {
    return absl::PermissionDeniedError(
        fmt::format("cannot write {}: {}", path.string(), std::strerror(errno)));
  }
  return PidFile(path);
}

PidFile::PidFile(PidFile&& other) noexcept : path_(std::exchange(other.path_, fs::path())) {}

PidFile::~PidFile() {
  std::error_code ignored;
  if (!path_.empty()) fs::remove(path_, ignored);
}

absl::StatusOr<pid_t> StopProcessOf(const fs::path& path, absl::Duration limit) {
  const std::string identity(Trimmed(FileText(path)));
  const auto words = WordsOf(identity);
  const auto pid = words.empty() ? std::nullopt : WholeNumber<pid_t>(words[0]);
  if (!pid) return absl::NotFoundError(fmt::format("{} names no process", path.string()));
  const ProcessHandle process(*pid);  // first the handle, then the check: no other can slip in
  if (!process.valid() || identity != IdentityOf(*pid)) {
    return absl::NotFoundError(
        fmt::format("the process of {} has ended without removing it", path.string()));
  }
  if (!process.Signal(SIGTERM)) {
    return absl::PermissionDeniedError(
        fmt::format("cannot signal process {}: {}", *pid, std::strerror(errno)));
  }
  if (!process.WaitForEnd(limit)) {
    return absl::DeadlineExceededError(
        fmt::format("process {} did not end within {}", *pid, absl::FormatDuration(limit)));
  }
  return *pid;
}

}  // namespace fulgur::bench

#include "bench/eval/sandbox.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <optional>
#include <thread>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "bench/results/text_file.h"

namespace fulgur::bench {
namespace {

namespace fs = std::filesystem;

// The command that runs `file` isolated. Both start in new user, mount, network and process
// namespaces; the program sees its own file and an empty /tmp.
std::vector<std::string> Command(const std::string& tool, const std::string& file) {
  if (tool == "bwrap") {
    return {"bwrap",
            "--unshare-all",
            "--die-with-parent",
            "--new-session",
            "--ro-bind",
            "/usr",
            "/usr",
            "--symlink",
            "usr/lib",
            "/lib",
            "--symlink",
            "usr/lib64",
            "/lib64",
            "--symlink",
            "usr/bin",
            "/bin",
            "--proc",
            "/proc",
            "--dev",
            "/dev",
            "--tmpfs",
            "/tmp",
            "--ro-bind",
            file,
            "/tmp/program.py",
            "--clearenv",
            "/usr/bin/python3",
            "-I",
            "/tmp/program.py"};
  }
  return {"unshare", "--user",       "--map-root-user",  "--mount", "--net", "--pid",
          "--fork",  "--kill-child", "/usr/bin/python3", "-I",      file};
}

void Limit(int resource, int64_t value) {
  const rlimit limit = {static_cast<rlim_t>(value), static_cast<rlim_t>(value)};
  setrlimit(static_cast<__rlimit_resource_t>(resource), &limit);
}

// In the child, after fork: only calls that are safe there.
[[noreturn]] void Become(char* const* argv, const SandboxLimits& limits) {
  setpgid(0, 0);
  const int null = open("/dev/null", O_RDWR);
  for (int stream : {0, 1, 2}) dup2(null, stream);
  Limit(RLIMIT_CPU, limits.cpu_seconds);
  Limit(RLIMIT_AS, limits.memory_bytes);
  Limit(RLIMIT_FSIZE, limits.file_bytes);
  Limit(RLIMIT_CORE, 0);
  execvp(argv[0], argv);
  _exit(127);
}

// The exit status, or nullopt after the deadline.
std::optional<int> WaitFor(pid_t child, std::chrono::steady_clock::time_point deadline) {
  int status = 0;
  while (waitpid(child, &status, WNOHANG) == 0) {
    if (std::chrono::steady_clock::now() > deadline) return std::nullopt;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return status;
}

absl::StatusOr<bool> RunFile(const std::string& tool, const std::string& file,
                             const SandboxLimits& limits) {
  std::vector<std::string> words = Command(tool, file);
  std::vector<char*> argv;
  argv.reserve(words.size() + 1);
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  const pid_t child = fork();
  if (child < 0) return absl::InternalError(absl::StrCat("fork: ", std::strerror(errno)));
  if (child == 0) Become(argv.data(), limits);
  const auto status = WaitFor(child, std::chrono::steady_clock::now() + limits.wall);
  kill(-child, SIGKILL);  // what it left behind
  if (!status) {
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
    return false;
  }
  return WIFEXITED(*status) && WEXITSTATUS(*status) == 0;
}

}  // namespace

absl::StatusOr<Sandbox> Sandbox::Create(const SandboxLimits& limits) {
  for (const char* tool : {"bwrap", "unshare"}) {
    Sandbox sandbox(limits, tool);
    const auto works = sandbox.RunProgram("print('ready')\n");
    if (works.ok() && *works) return sandbox;
  }
  return absl::FailedPreconditionError(
      "--allow-code-execution: neither bubblewrap nor unshare can start an isolated python3 here; "
      "install the packages bubblewrap and python3, and allow user namespaces");
}

absl::StatusOr<bool> Sandbox::RunProgram(const std::string& program) const {
  std::string folder = (fs::temp_directory_path() / "fulgur-code-XXXXXX").string();
  if (mkdtemp(folder.data()) == nullptr) {
    return absl::InternalError(absl::StrCat(folder, ": ", std::strerror(errno)));
  }
  const auto remove = absl::MakeCleanup([&folder] {
    std::error_code ignored;
    fs::remove_all(folder, ignored);
  });
  const std::string file = folder + "/program.py";
  RETURN_IF_ERROR(WriteTextFile(file, program));
  return RunFile(tool_, file, limits_);
}

}  // namespace fulgur::bench

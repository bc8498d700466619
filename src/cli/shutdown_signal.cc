#include "cli/shutdown_signal.h"

#include <signal.h>
#include <unistd.h>

#include "spdlog/spdlog.h"

namespace fulgur::cli {
namespace {

sigset_t ShutdownSet() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGTERM);
  sigaddset(&set, SIGINT);
  return set;
}

}  // namespace

ShutdownSignal::ShutdownSignal() {
  const sigset_t set = ShutdownSet();
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  receiver_ = std::thread([this] { Receive(); });
}

ShutdownSignal::~ShutdownSignal() {
  stop_ = true;
  pthread_kill(receiver_.native_handle(), SIGTERM);
  receiver_.join();
}

void ShutdownSignal::Receive() {
  const sigset_t set = ShutdownSet();
  for (int signal = 0; sigwait(&set, &signal) == 0;) {
    if (stop_) return;
    if (!armed_) {
      spdlog::info("stopped before serving");
      _exit(0);
    }
    const std::lock_guard lock(mutex_);
    if (received_) {
      spdlog::warn("second signal: ending at once");
      _exit(128 + signal);
    }
    received_ = true;
    changed_.notify_all();
  }
}

bool ShutdownSignal::WaitFor(absl::Duration time) {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, absl::ToChronoNanoseconds(time), [this] { return received_; });
}

}  // namespace fulgur::cli

#include "cli/shutdown_signal.h"

#include <signal.h>
#include <unistd.h>

#include <chrono>

#include "spdlog/spdlog.h"

namespace fulgur::cli {
namespace {

// Some supervisors signal a process and then its group: that is one wish, not two.
constexpr auto kSameWish = std::chrono::milliseconds(300);

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
  // The signal is blocked everywhere: this only wakes the receiver's sigwait.
  pthread_kill(receiver_.native_handle(), SIGTERM);  // NOLINT(bugprone-bad-signal-to-kill-thread)
  receiver_.join();
}

void ShutdownSignal::Receive() {
  const sigset_t set = ShutdownSet();
  for (int signal = 0; sigwait(&set, &signal) == 0;) {
    if (stop_) return;
    if (!armed_) {
      spdlog::info("stopped before serving");
      _exit(128 + signal);
    }
    const std::lock_guard lock(mutex_);
    const auto now = std::chrono::steady_clock::now();
    if (received_ && now - received_at_ < kSameWish) continue;
    if (received_) {
      spdlog::warn("second signal: ending at once");
      _exit(128 + signal);
    }
    received_ = true;
    received_at_ = now;
    changed_.notify_all();
  }
}

bool ShutdownSignal::WaitFor(absl::Duration time) {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, absl::ToChronoNanoseconds(time), [this] { return received_; });
}

}  // namespace fulgur::cli

#include "base/team.h"

#include <unistd.h>

#include <algorithm>

#include "base/check.h"

namespace fulgur::base {
namespace {

// About 50-100 us of polling before a futex sleep, which costs tens of microseconds to leave.
constexpr int kSpins = 4000;

void Pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

// Returns once `value` no longer holds `old`.
template <typename T>
void WaitForChange(const std::atomic<T>& value, T old) {
  for (int i = 0; i < kSpins; ++i) {
    if (value.load(std::memory_order_acquire) != old) return;
    Pause();
  }
  while (value.load(std::memory_order_acquire) == old) value.wait(old, std::memory_order_acquire);
}

}  // namespace

void SpinBarrier::Wait(bool leads, absl::FunctionRef<void()> alone) {
  const uint32_t generation = generation_.load(std::memory_order_acquire);
  const bool complete = arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 == num_threads_;
  if (!leads) {
    if (complete) arrived_.notify_one();
    WaitForChange(generation_, generation);
    return;
  }
  AwaitAll();
  alone();
  arrived_.store(0, std::memory_order_relaxed);
  generation_.fetch_add(1, std::memory_order_release);
  generation_.notify_all();
}

void SpinBarrier::AwaitAll() {
  for (int i = 0; i < kSpins; ++i) {
    if (arrived_.load(std::memory_order_acquire) == num_threads_) return;
    Pause();
  }
  int arrived = arrived_.load(std::memory_order_acquire);
  for (; arrived != num_threads_; arrived = arrived_.load(std::memory_order_acquire)) {
    arrived_.wait(arrived, std::memory_order_acquire);
  }
}

std::pair<int64_t, int64_t> WorkerRank::Share(int64_t n, int64_t grain) const {
  const int64_t units = (n + grain - 1) / grain;
  const int64_t begin = units * rank_ / size_ * grain;
  const int64_t end = units * (rank_ + 1) / size_ * grain;
  return {std::min(begin, n), std::min(end, n)};
}

WorkerTeam::WorkerTeam(int size)
    : size_(size), barrier_(size), active_(size), members_(static_cast<size_t>(size)) {
  CHECK_GE(size, 1);
  for (int rank = 1; rank < size; ++rank) threads_.emplace_back([this, rank] { WorkerLoop(rank); });
}

WorkerTeam::~WorkerTeam() {
  stop_.store(true, std::memory_order_relaxed);
  epoch_.fetch_add(1, std::memory_order_release);
  epoch_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void WorkerTeam::SetActive(int workers) {
  CHECK(workers >= 1 && workers <= size_);
  const uint32_t epoch = epoch_.load(std::memory_order_relaxed);
  for (int rank = active(); rank < workers; ++rank) {
    members_[static_cast<size_t>(rank)].joined_at.store(epoch, std::memory_order_relaxed);
  }
  barrier_.Resize(workers);
  active_.store(workers, std::memory_order_release);
}

std::vector<int> WorkerTeam::ThreadIds() const {
  std::vector<int> ids;
  for (const Member& member : members_) ids.push_back(member.thread_id.load());
  return ids;
}

void WorkerTeam::Run(const std::function<void(const WorkerRank&)>& region) {
  region_ = &region;
  running_.store(active() - 1, std::memory_order_relaxed);
  epoch_.fetch_add(1, std::memory_order_release);
  epoch_.notify_all();
  RunAs(0);
  WaitUntilIdle();
}

void WorkerTeam::RunAs(int rank) {
  Member& self = members_[static_cast<size_t>(rank)];
  if (self.thread_id.load(std::memory_order_relaxed) == 0) self.thread_id.store(gettid());
  (*region_)(WorkerRank(rank, active(), &barrier_));
}

// A worker that stands aside still wakes for each region, perhaps long after it: `joined_at` tells
// a region that waits for it from one that ended without it.
void WorkerTeam::WorkerLoop(int rank) {
  const Member& self = members_[static_cast<size_t>(rank)];
  uint32_t seen = 0;
  while (true) {
    WaitForChange(epoch_, seen);
    seen = epoch_.load(std::memory_order_acquire);
    if (stop_.load(std::memory_order_relaxed)) return;
    if (rank >= active_.load(std::memory_order_acquire)) continue;
    if (self.joined_at.load(std::memory_order_relaxed) == seen) continue;
    RunAs(rank);
    if (running_.fetch_sub(1, std::memory_order_acq_rel) == 1) running_.notify_one();
  }
}

void WorkerTeam::WaitUntilIdle() {
  for (int left = running_.load(std::memory_order_acquire); left != 0;
       left = running_.load(std::memory_order_acquire)) {
    WaitForChange(running_, left);
  }
}

}  // namespace fulgur::base

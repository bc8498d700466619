// A fixed team of worker threads that runs one function in every worker at once (SPMD), with a
// barrier inside.
//
// The whole forward pass is one entry into the team: workers split each stage among themselves and
// meet at `WorkerRank::Barrier()` between stages. Waiting spins briefly (another worker is usually
// microseconds away), then sleeps, so an oversubscribed machine does not burn its cores. Where
// other programs use the cores, every stage waits for the worker that lost its own: fewer active
// workers are then faster (team_sizer.h).
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <thread>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"

namespace fulgur::base {

// Reusable barrier for a fixed number of threads. Thread-safe.
class SpinBarrier {
 public:
  explicit SpinBarrier(int num_threads) : num_threads_(num_threads) {}

  // Only while nobody waits.
  void Resize(int num_threads) { num_threads_ = num_threads; }

  // Returns when all threads have arrived and the leader, of which there is one, has run its
  // `alone`; the others' is not used. Everything written before by any of them is visible to it and
  // afterwards.
  void Wait(bool leads, absl::FunctionRef<void()> alone);

  // How often all threads have met; wraps around.
  uint32_t meetings() const { return generation_.load(std::memory_order_relaxed); }

 private:
  void AwaitAll();

  int num_threads_;
  alignas(64) std::atomic<int> arrived_{0};
  alignas(64) std::atomic<uint32_t> generation_{0};
};

// What a worker knows of itself inside a region.
class WorkerRank {
 public:
  WorkerRank(int rank, int size, SpinBarrier* barrier)
      : rank_(rank), size_(size), barrier_(barrier) {}

  int rank() const { return rank_; }
  int size() const { return size_; }

  // Waits for all workers. With `alone`, worker 0 runs it before anybody goes on: always the same
  // one, so that no other ever needs memory for it.
  void Barrier() const {
    Barrier([] {});
  }
  void Barrier(absl::FunctionRef<void()> alone) const {
    size_ > 1 ? barrier_->Wait(rank_ == 0, alone) : alone();
  }

  // The only worker of a region, for what one worker does while the others wait.
  static WorkerRank Alone() { return {0, 1, nullptr}; }

  // This worker's contiguous share [begin, end) of n units, in multiples of `grain`.
  std::pair<int64_t, int64_t> Share(int64_t n, int64_t grain = 1) const;

 private:
  int rank_;
  int size_;
  SpinBarrier* barrier_;
};

// `size` workers, of which the first `active` run regions; the calling thread is worker 0. One
// thread calls Run and SetActive, one region at a time; Run is not reentrant.
class WorkerTeam {
 public:
  explicit WorkerTeam(int size);
  ~WorkerTeam();
  WorkerTeam(const WorkerTeam&) = delete;
  WorkerTeam& operator=(const WorkerTeam&) = delete;

  int size() const { return size_; }
  int active() const { return active_.load(std::memory_order_relaxed); }
  // 1 to size. All are active at first.
  void SetActive(int workers);

  // System ids of the workers' threads; that of worker 0 is known after the first region.
  std::vector<int> ThreadIds() const;

  // Barriers that workers have met at so far; a team of one has none.
  uint32_t barriers() const { return barrier_.meetings(); }

  // Calls region(rank) once in every active worker and returns when all are done.
  void Run(const std::function<void(const WorkerRank&)>& region);

 private:
  // What the owner tells and learns of a worker.
  struct Member {
    // The epoch in which the worker became active: it joins later ones only.
    std::atomic<uint32_t> joined_at{0};
    std::atomic<int> thread_id{0};
  };

  void WorkerLoop(int rank);
  void RunAs(int rank);
  void WaitUntilIdle();

  const int size_;
  SpinBarrier barrier_;
  const std::function<void(const WorkerRank&)>* region_ = nullptr;
  alignas(64) std::atomic<uint32_t> epoch_{0};  // bumped to start a region; odd/even has no meaning
  alignas(64) std::atomic<int> running_{0};     // workers other than the caller still inside
  std::atomic<int> active_;
  std::atomic<bool> stop_{false};
  std::vector<Member> members_;
  std::vector<std::thread> threads_;
};

}  // namespace fulgur::base

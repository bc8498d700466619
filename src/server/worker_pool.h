// A few threads for work that would hold up the network thread: parsing and tokenising requests.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace fulgur::server {

class WorkerPool {
 public:
  explicit WorkerPool(int num_threads);
  ~WorkerPool() { Stop(); }

  // Runs `task` on some thread; tasks start in the order of the calls.
  void Run(std::function<void()> task);

  // Finishes the tasks that run, drops those that wait. Idempotent.
  void Stop();

 private:
  void Work();

  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<std::function<void()>> tasks_;
  bool stopping_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace fulgur::server

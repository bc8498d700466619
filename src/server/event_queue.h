// Carries events from the engine's thread to the network thread.
//
// Push never blocks on the network: it appends under a short lock, and only the first event of a
// batch wakes the network thread. So all tokens of one engine step are handled, and written, at
// once.
#pragma once

#include <cstdint>
#include <functional>
#include <mutex>
#include <utility>
#include <vector>

#include "engine/engine.h"

namespace fulgur::server {

// Names one Engine::Submit; never reused.
using SubmissionId = uint64_t;

class EventQueue {
 public:
  using Item = std::pair<SubmissionId, engine::RequestEvent>;

  // `wake` makes the consumer call Take() soon; called from the pushing thread.
  explicit EventQueue(std::function<void()> wake) : wake_(std::move(wake)) {}

  void Push(SubmissionId id, engine::RequestEvent event) {
    std::lock_guard lock(mutex_);
    if (closed_) return;
    items_.emplace_back(id, std::move(event));
    if (items_.size() == 1) wake_();
  }

  std::vector<Item> Take() {
    std::lock_guard lock(mutex_);
    return std::exchange(items_, {});
  }

  // From now on events are dropped and `wake` is not called.
  void Close() {
    std::lock_guard lock(mutex_);
    closed_ = true;
    items_.clear();
  }

 private:
  std::mutex mutex_;
  std::function<void()> wake_;
  bool closed_ = false;
  std::vector<Item> items_;
};

}  // namespace fulgur::server

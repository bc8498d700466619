#include "bench/load/session_queue.h"

#include <utility>

namespace fulgur::bench {

SessionQueue::SessionQueue(std::function<std::optional<PlannedSession>()> make,
                           size_t capacity_bytes, size_t capacity_sessions)
    : make_(std::move(make)),
      capacity_bytes_(capacity_bytes),
      capacity_sessions_(capacity_sessions) {
  thread_ = std::thread([this] { Fill(); });
}

SessionQueue::~SessionQueue() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

bool SessionQueue::IsFull() const {
  return bytes_ >= capacity_bytes_ || sessions_.size() >= capacity_sessions_;
}

void SessionQueue::Fill() {
  for (;;) {
    std::optional<PlannedSession> session = make_();
    std::unique_lock lock(mutex_);
    if (session) {
      bytes_ += session->bytes();
      sessions_.push_back(std::move(*session));
    } else {
      complete_ = true;
    }
    changed_.notify_all();
    changed_.wait(lock, [this] { return stopping_ || complete_ || !IsFull(); });
    if (stopping_ || complete_) return;
  }
}

void SessionQueue::WaitUntilFilled() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return complete_ || IsFull(); });
}

std::optional<PlannedSession> SessionQueue::TryTake() {
  const std::lock_guard lock(mutex_);
  if (sessions_.empty()) return std::nullopt;
  PlannedSession session = std::move(sessions_.front());
  sessions_.pop_front();
  bytes_ -= session.bytes();
  changed_.notify_all();
  return session;
}

bool SessionQueue::AtEnd() const {
  const std::lock_guard lock(mutex_);
  return complete_ && sessions_.empty();
}

}  // namespace fulgur::bench

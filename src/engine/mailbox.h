// Collects the events of many requests in tests. Thread-safe.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <condition_variable>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "engine/engine.h"

namespace fulgur::engine {

class Mailbox {
 public:
  EventSink Sink(int key) {
    return [this, key](RequestEvent event) {
      const std::lock_guard lock(mutex_);
      for (const OutputToken& token : event.tokens) tokens_[key].push_back(token.token);
      EXPECT_FALSE(ends_.contains(key)) << "an event after the last one";
      ++num_events_[key];
      if (event.finish) ends_[key] = std::move(event);
      changed_.notify_all();
    };
  }

  RequestEvent WaitForEnd(int key) {
    std::unique_lock lock(mutex_);
    EXPECT_TRUE(changed_.wait_for(lock, kPatience, [&] { return ends_.contains(key); }));
    return ends_[key];
  }

  void WaitForTokens(int key, size_t count) {
    std::unique_lock lock(mutex_);
    EXPECT_TRUE(changed_.wait_for(lock, kPatience, [&] { return tokens_[key].size() >= count; }));
  }

  std::vector<int32_t> tokens(int key) {
    const std::lock_guard lock(mutex_);
    return tokens_[key];
  }
  int num_events(int key) {
    const std::lock_guard lock(mutex_);
    return num_events_[key];
  }
  size_t num_ends() {
    const std::lock_guard lock(mutex_);
    return ends_.size();
  }

 private:
  static constexpr std::chrono::seconds kPatience{20};

  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<int, std::vector<int32_t>> tokens_;
  std::map<int, RequestEvent> ends_;
  std::map<int, int> num_events_;
};

}  // namespace fulgur::engine

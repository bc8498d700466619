// An engine for tests of the server: answers with given tokens, one step at a time, and can be
// slow, fail, die or count what it holds.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "engine/engine.h"

namespace fulgur::server::testing {

// What the engine says to one request.
struct Script {
  std::vector<int32_t> tokens;  // without end-of-sequence
  engine::FinishReason finish = engine::FinishReason::kStop;
  std::string error;
  bool disconnect = false;  // the last event asks for a broken connection
};

class FakeEngine : public engine::Engine {
 public:
  using Author = std::function<Script(const engine::Request&)>;

  FakeEngine(int64_t max_model_len, int64_t vocab_size, int32_t eos, Author author)
      : max_model_len_(max_model_len),
        vocab_size_(vocab_size),
        eos_(eos),
        author_(std::move(author)),
        thread_([this] { Run(); }) {}
  ~FakeEngine() override { FakeEngine::Shutdown(false); }

  // Time between steps; zero means as fast as possible. `tokens_per_step` for each request.
  void SetPace(std::chrono::milliseconds pause, size_t tokens_per_step = 1) {
    std::lock_guard lock(mutex_);
    pause_ = pause;
    tokens_per_step_ = tokens_per_step;
  }
  void Die() { dead_ = true; }

  // Requests that hold memory now.
  size_t num_active() const {
    std::lock_guard lock(mutex_);
    return active_.size();
  }
  size_t num_aborts() const { return num_aborts_; }
  std::vector<engine::Request> requests() const {
    std::lock_guard lock(mutex_);
    return requests_;
  }

  absl::StatusOr<engine::RequestId> Submit(engine::Request request,
                                           engine::EventSink sink) override {
    std::lock_guard lock(mutex_);
    if (dead_ || stopping_) return absl::UnavailableError("The engine has stopped.");
    if (request.params.max_tokens < 1) return absl::InvalidArgumentError("max_tokens < 1");
    requests_.push_back(request);
    Active active{author_(request), std::move(request), std::move(sink)};
    active_.emplace(++last_id_, std::move(active));
    wake_.notify_all();
    return last_id_;
  }

  void Abort(engine::RequestId id) override {
    std::lock_guard lock(mutex_);
    auto found = active_.find(id);
    if (found == active_.end()) return;
    found->second.aborted = true;
    ++num_aborts_;
    wake_.notify_all();
  }

  absl::Status Health() const override {
    return dead_ ? absl::InternalError("A worker has died.") : absl::OkStatus();
  }

  engine::EngineStats Stats() const override {
    std::lock_guard lock(mutex_);
    engine::EngineStats stats;
    stats.num_running = static_cast<int64_t>(active_.size());
    stats.num_waiting = num_waiting_;
    stats.waiting_prompt_tokens = num_waiting_ * 50;
    stats.pages_total = 100;
    stats.pages_used = static_cast<int64_t>(active_.size());
    stats.slots_used = static_cast<int64_t>(active_.size());
    stats.generation_tokens = num_tokens_;
    stats.num_steps = num_steps_;
    return stats;
  }
  void SetNumWaiting(int64_t count) {
    std::lock_guard lock(mutex_);
    num_waiting_ = count;
  }

  int64_t MaxModelLen() const override { return max_model_len_; }
  int64_t VocabSize() const override { return vocab_size_; }

  void Shutdown(bool) override {
    {
      std::lock_guard lock(mutex_);
      stopping_ = true;
      wake_.notify_all();
    }
    if (thread_.joinable()) thread_.join();
  }

 private:
  struct Active {
    Script script;
    engine::Request request;
    engine::EventSink sink;
    size_t next = 0;
    bool aborted = false;
  };

  void Run() {
    std::unique_lock lock(mutex_);
    while (!stopping_) {
      wake_.wait(lock, [this] { return stopping_ || !active_.empty(); });
      if (stopping_) break;
      Step();
      if (pause_.count() > 0) {
        wake_.wait_for(lock, pause_, [this] { return stopping_; });
      } else {
        lock.unlock();
        std::this_thread::yield();
        lock.lock();
      }
    }
  }

  void Step() {
    ++num_steps_;
    for (auto it = active_.begin(); it != active_.end();) {
      engine::RequestEvent event = Advance(it->second);
      bool finished = event.finish.has_value();
      it->second.sink(std::move(event));
      it = finished ? active_.erase(it) : std::next(it);
    }
  }

  engine::OutputToken Say(const Active& active, int32_t token) {
    ++num_tokens_;
    engine::OutputToken output;
    output.token = token;
    if (active.request.params.num_logprobs) {
      output.logprob = engine::TokenLogprob{token, -0.5F, 1};
      for (int32_t i = 0; i < *active.request.params.num_logprobs; ++i) {
        output.alternatives.push_back({(token + i) % static_cast<int32_t>(vocab_size_),
                                       -0.5F - static_cast<float>(i), i + 1});
      }
    }
    return output;
  }

  engine::RequestEvent Advance(Active& active) {
    engine::RequestEvent event;
    if (active.aborted) {
      event.finish = engine::FinishReason::kAbort;
      return event;
    }
    if (dead_ || (active.script.finish == engine::FinishReason::kError &&
                  active.next == active.script.tokens.size())) {
      event.finish = engine::FinishReason::kError;
      event.error = dead_ ? "A worker has died." : active.script.error;
      return event;
    }
    if (active.next == 0 && active.request.params.num_prompt_logprobs) {
      for (size_t i = 0; i < active.request.prompt.size(); ++i) {
        event.prompt_logprobs.emplace_back();
        if (i > 0) event.prompt_logprobs.back().push_back({active.request.prompt[i], -1.25F, 1});
      }
    }
    for (size_t i = 0; i < tokens_per_step_ && !event.finish; ++i) AddToken(active, &event);
    return event;
  }

  void AddToken(Active& active, engine::RequestEvent* event) {
    const auto& params = active.request.params;
    bool over = active.next >= active.script.tokens.size();
    if (over && active.script.finish != engine::FinishReason::kStop) {
      event->finish = active.script.finish;
      event->disconnect = active.script.disconnect;
      return;
    }
    int32_t token = over ? eos_ : active.script.tokens[active.next];
    ++active.next;
    event->tokens.push_back(Say(active, token));
    const auto& stops = params.stop_token_ids;
    if ((token == eos_ && !params.ignore_eos) ||
        std::find(stops.begin(), stops.end(), token) != stops.end()) {
      event->finish = engine::FinishReason::kStop;
      event->stop_token = token;
    } else if (static_cast<int64_t>(active.next) >= params.max_tokens) {
      event->finish = engine::FinishReason::kLength;
    }
  }

  const int64_t max_model_len_;
  const int64_t vocab_size_;
  const int32_t eos_;
  const Author author_;

  mutable std::mutex mutex_;
  std::condition_variable wake_;
  std::map<engine::RequestId, Active> active_;
  std::vector<engine::Request> requests_;
  engine::RequestId last_id_ = 0;
  std::chrono::milliseconds pause_{0};
  size_t tokens_per_step_ = 1;
  int64_t num_waiting_ = 0;
  int64_t num_steps_ = 0;
  int64_t num_tokens_ = 0;
  bool stopping_ = false;
  std::atomic<bool> dead_ = false;
  std::atomic<size_t> num_aborts_ = 0;
  std::thread thread_;
};

}  // namespace fulgur::server::testing

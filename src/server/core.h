// What all endpoints share: settings, engine, metrics, and the way from the network thread to a
// worker and back.
//
// Network thread only, unless said otherwise.
#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "engine/engine.h"
#include "server/api_error.h"
#include "server/dispatcher.h"
#include "server/job.h"
#include "server/metrics.h"
#include "server/router.h"
#include "server/server.h"
#include "server/speculation_report.h"
#include "server/worker_pool.h"

namespace fulgur::server {

class Core {
 public:
  Core(ServerOptions options, engine::Engine& engine, const text::Tokenizer* tokenizer,
       ModelInfo model);
  Core(const Core&) = delete;

  // Attaches the transport; nothing may be handled before.
  void Attach(HttpServer* http);

  const ServerOptions& options() const { return options_; }
  const ModelInfo& model() const { return model_; }
  const ServingContext& serving() const { return serving_; }
  const std::optional<std::string>& fingerprint() const { return fingerprint_; }
  int64_t start_seconds() const { return start_seconds_; }
  engine::Engine& engine() { return engine_; }
  Metrics& metrics() { return metrics_; }
  Dispatcher& dispatcher() { return *dispatcher_; }

  // Runs `work(body)` on a worker thread, then `then(call, result)` on the network thread. The call
  // itself never leaves the network thread. `work` may only touch what is thread-safe.
  template <typename Work, typename Then>
  void Offload(Call call, Work work, Then then) {
    std::string body = std::move(call.request.body);
    uint64_t ticket = next_ticket_++;
    offloaded_.emplace(ticket, std::move(call));
    WorkerPool& workers = body.size() > kLongBodyBytes ? long_workers_ : workers_;
    workers.Run([this, ticket, body = std::move(body), work, then]() mutable {
      using Result = std::invoke_result_t<Work, std::string>;
      auto result = std::make_shared<Result>(WithoutExceptions<Result>(work, std::move(body)));
      http_->Post([this, ticket, result, then] {
        auto node = offloaded_.extract(ticket);
        if (!node.empty()) then(std::move(node.mapped()), std::move(*result));
      });
    });
  }

  // OK, or why the server cannot serve: the engine is dead or has not finished a step for too long.
  absl::Status Health() const;

  // Called about once a second.
  void Watch(absl::Time now);

  // Answers what waits for a worker with an error; no call is offloaded afterwards.
  void FailOffloaded(const absl::Status& error);

  // Joins the workers and lets go of every call. From another thread than the network's, once that
  // has ended.
  void Shutdown() {
    workers_.Stop();
    long_workers_.Stop();
    offloaded_.clear();
    dispatcher_.reset();
  }

 private:
  static constexpr size_t kLongBodyBytes = 1 << 20;

  // Our own code throws nothing; the standard library does when memory runs out.
  template <typename Result, typename Work>
  static Result WithoutExceptions(Work& work, std::string body) {
    try {
      return work(std::move(body));
    } catch (const std::exception& error) {
      return EngineError(std::string("The request could not be processed: ") + error.what());
    }
  }

  ServerOptions options_;
  ModelInfo model_;
  engine::Engine& engine_;
  std::unique_ptr<grammar::FormatCompiler> formats_;  // null: without a tokenizer
  ServingContext serving_;
  std::optional<std::string> fingerprint_;
  int64_t start_seconds_;
  Metrics metrics_;
  HttpServer* http_ = nullptr;
  std::unique_ptr<Dispatcher> dispatcher_;
  std::map<uint64_t, Call> offloaded_;
  uint64_t next_ticket_ = 0;
  int64_t last_steps_ = -1;
  absl::Time last_progress_ = absl::InfiniteFuture();
  bool hung_ = false;
  SpeculationLog speculation_log_;
  WorkerPool workers_;
  WorkerPool long_workers_{1};  // megabytes of text take seconds, which others need not wait for
};

// 400 unless the request says that its body is JSON.
absl::Status CheckContentType(const HttpRequest& request);

}  // namespace fulgur::server

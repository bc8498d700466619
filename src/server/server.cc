#include "server/server.h"

#include <fmt/format.h>

#include <mutex>
#include <utility>

#include "absl/time/clock.h"
#include "base/status_macros.h"
#include "server/core.h"
#include "server/generation_endpoint.h"
#include "server/info_endpoints.h"
#include "server/tokenize_endpoints.h"

namespace fulgur::server {
namespace {

constexpr absl::Duration kWatchInterval = absl::Seconds(1);
constexpr absl::Duration kFlushTime = absl::Seconds(1);  // for last words after an abort

absl::Status CheckOptions(const ServerOptions& options) {
  if (options.served_model_names.empty()) {
    return absl::InvalidArgumentError("--served-model-name: at least one name is needed.");
  }
  if (options.stream_interval < 1) {
    return absl::InvalidArgumentError("--stream-interval must be at least 1.");
  }
  if (options.chat.auto_tool_choice && !options.chat.tool_parser) {
    return absl::InvalidArgumentError("--enable-auto-tool-choice requires --tool-call-parser");
  }
  return absl::OkStatus();
}

class ServerImpl : public Server {
 public:
  ServerImpl(ServerOptions options, engine::Engine& engine, const text::Tokenizer* tokenizer,
             ModelInfo model)
      : core_(std::move(options), engine, tokenizer, std::move(model)),
        router_(core_.options(), core_.metrics()),
        generation_(core_) {
    AddRoutes();
  }
  ~ServerImpl() override { ServerImpl::Stop(absl::ZeroDuration()); }

  absl::Status Listen() {
    ASSIGN_OR_RETURN(http_, HttpServer::Create(core_.options().listen, &router_));
    core_.Attach(http_.get());
    http_->Run();
    Watch();
    return absl::OkStatus();
  }

  int port() const override { return http_->port(); }

  int64_t requests_in_flight() const override { return router_.num_open(); }

  void Stop(absl::Duration drain) override {
    std::lock_guard lock(stop_mutex_);
    if (stopped_) return;
    stopped_ = true;
    if (http_ == nullptr) return;
    http_->StopAccepting();
    if (!http_->WaitUntilIdle(drain)) {
      http_->Post([this] {
        core_.FailOffloaded(OverloadedError("The server is shutting down."));
        generation_.Abort();
      });
      http_->WaitUntilIdle(kFlushTime);
    }
    http_->Stop();
    core_.Shutdown();
  }

 private:
  void AddRoutes() {
    auto chat = [this](Call call) { generation_.Chat(std::move(call)); };
    auto completion = [this](Call call) { generation_.Completion(std::move(call)); };
    router_.Add("POST", "/v1/chat/completions", chat);
    router_.Add("POST", "/v1/completions", completion);
    // The official DeepSeek API has its paths without a version.
    constexpr bool kGuarded = true;
    router_.Add("POST", "/chat/completions", chat, kGuarded);
    router_.Add("POST", "/invocations", chat, kGuarded);

    auto models = [this](const Call& call) { ListModels(core_, call); };
    router_.Add("GET", "/v1/models", models);
    router_.Add("GET", "/models", models, kGuarded);
    router_.Add("GET", "/v1/models/*", [this](const Call& call) { ShowModel(core_, call); });
    router_.Add("POST", "/tokenize", [this](Call call) { Tokenize(core_, std::move(call)); });
    router_.Add("POST", "/detokenize", [this](Call call) { Detokenize(core_, std::move(call)); });
    if (core_.options().enable_tokenizer_info_endpoint) {
      router_.Add("GET", "/tokenizer_info",
                  [this](const Call& call) { ShowTokenizer(core_, call); });
    }
    auto health = [this](const Call& call) { ShowHealth(core_, call); };
    router_.Add("GET", "/health", health);
    router_.Add("GET", "/ping", health);
    router_.Add("POST", "/ping", health);
    router_.Add("GET", "/version", [this](const Call& call) { ShowVersion(core_, call); });
    router_.Add("GET", "/metrics", [this](const Call& call) { ShowMetrics(core_, call); });
    router_.Add("GET", "/load",
                [this](const Call& call) { ShowLoad(core_, router_.num_open() - 1, call); });
  }

  // Ticks on the network thread for as long as it runs.
  void Watch() {
    http_->PostAfter(kWatchInterval, [this] {
      absl::Time now = absl::Now();
      core_.Watch(now);
      absl::Duration interval = core_.options().sse_keep_alive_interval;
      if (interval > absl::ZeroDuration() && now - last_keep_alive_ >= interval) {
        last_keep_alive_ = now;
        generation_.KeepAlive();
      }
      Watch();
    });
  }

  Core core_;
  Router router_;
  GenerationEndpoint generation_;
  absl::Time last_keep_alive_ = absl::InfinitePast();
  std::mutex stop_mutex_;
  bool stopped_ = false;
  std::unique_ptr<HttpServer> http_;  // goes first: it holds callbacks into all of the above
};

}  // namespace

absl::StatusOr<std::unique_ptr<Server>> Server::Start(ServerOptions options, engine::Engine& engine,
                                                      const text::Tokenizer* tokenizer,
                                                      ModelInfo model) {
  RETURN_IF_ERROR(CheckOptions(options));
  auto server =
      std::make_unique<ServerImpl>(std::move(options), engine, tokenizer, std::move(model));
  RETURN_IF_ERROR(server->Listen());
  return server;
}

}  // namespace fulgur::server

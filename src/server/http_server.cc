#include <spdlog/spdlog.h>

#include <algorithm>
#include <condition_variable>
#include <filesystem>
#include <mutex>
#include <optional>
#include <thread>
#include <unordered_set>
#include <variant>

#include "base/status_macros.h"
#include "server/http.h"
#include "server/http_connection.h"
#include "server/http_listener.h"
#include "server/http_wire.h"

namespace fulgur::server {

bool EqualsIgnoreCase(std::string_view a, std::string_view b) {
  auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; };
  auto same = [&](char x, char y) { return lower(x) == lower(y); };
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), same);
}

const std::string* FindHeader(const HeaderList& headers, std::string_view name) {
  for (const auto& [key, value] : headers) {
    if (EqualsIgnoreCase(key, name)) return &value;
  }
  return nullptr;
}

namespace {

constexpr auto kSweepInterval = std::chrono::milliseconds(200);

class AsioHttpServer : public HttpServer {
 public:
  AsioHttpServer(const ListenOptions& options, HttpHandler* handler)
      : options_(options), sweep_timer_(io_), accept_timer_(io_) {
    context_.options = &options_;
    context_.handler = handler;
    context_.on_closed = [this](Connection* connection) { Forget(connection); };
  }
  ~AsioHttpServer() override { AsioHttpServer::Stop(); }

  absl::Status Listen() {
    ASSIGN_OR_RETURN(tls_, MakeTlsContext(options_));
    ASSIGN_OR_RETURN(acceptor_, server::Listen(io_, options_));
    if (auto* tcp = std::get_if<asio::ip::tcp::acceptor>(&*acceptor_)) {
      port_ = tcp->local_endpoint().port();
    }
    return absl::OkStatus();
  }

  void Run() override {
    Accept();
    Sweep();
    thread_ = std::thread([this] { RunLoop(); });
  }

  int port() const override { return port_; }

  void Post(std::function<void()> task) override { asio::post(io_, std::move(task)); }

  void PostAfter(absl::Duration delay, std::function<void()> task) override {
    asio::post(io_, [this, delay, task = std::move(task)]() mutable {
      auto timer = std::make_shared<asio::steady_timer>(io_, ToClock(delay));
      timer->async_wait([timer, task = std::move(task)](error_code error) {
        if (!error) task();
      });
    });
  }

  void StopAccepting() override {
    asio::post(io_, [this] {
      context_.stopping = true;
      CloseAcceptor();
      for (const auto& connection : Snapshot()) connection->CloseWhenIdle();
    });
  }

  bool WaitUntilIdle(absl::Duration limit) override {
    std::unique_lock lock(mutex_);
    return idle_.wait_for(lock, ToClock(limit), [this] { return num_open_ == 0; });
  }

  void Stop() override {
    if (!thread_.joinable()) return;
    asio::post(io_, [this] {
      context_.stopping = true;
      CloseAcceptor();
      for (const auto& connection : Snapshot()) connection->Close();
      io_.stop();
    });
    thread_.join();
  }

 private:
  // Our own code throws nothing; the standard library may, when memory runs out.
  void RunLoop() {
    while (true) {
      try {
        io_.run();
        return;
      } catch (const std::exception& error) {
        spdlog::error("The network thread failed at one task and goes on: {}", error.what());
      }
    }
  }

  std::vector<std::shared_ptr<Connection>> Snapshot() const {
    return {connections_.begin(), connections_.end()};
  }

  void CloseAcceptor() {
    if (!acceptor_) return;
    std::visit([](auto& acceptor) { acceptor.close(); }, *acceptor_);
    acceptor_.reset();
    if (options_.uds.empty()) return;
    std::error_code ignored;
    std::filesystem::remove(options_.uds, ignored);
  }

  void Accept() {
    if (accepting_ || !acceptor_ ||
        connections_.size() >= static_cast<size_t>(options_.max_connections)) {
      return;
    }
    accepting_ = true;
    std::visit(
        [this](auto& acceptor) {
          acceptor.async_accept([this](error_code error, auto socket) {
            accepting_ = false;
            if (error) return RetryAccept(error);
            Welcome(Socket(std::move(socket)));
            Accept();
          });
        },
        *acceptor_);
  }

  // Out of file descriptors, mostly: wait for some to be closed.
  void RetryAccept(error_code error) {
    if (error == asio::error::operation_aborted || !acceptor_) return;
    accept_timer_.expires_after(std::chrono::milliseconds(100));
    accept_timer_.async_wait([this](error_code) { Accept(); });
  }

  void Welcome(Socket socket) {
    error_code ignored;
    if (options_.uds.empty()) socket.set_option(asio::ip::tcp::no_delay(true), ignored);
    auto wire = tls_ ? MakeTlsWire(std::move(socket), *tls_) : MakePlainWire(std::move(socket));
    auto connection = Connection::Make(std::move(wire), &context_);
    connections_.insert(connection);
    SetNumOpen();
    connection->Start();
  }

  void Forget(Connection* connection) {
    connections_.erase(connection->shared_from_this());
    SetNumOpen();
    Accept();
  }

  void SetNumOpen() {
    std::lock_guard lock(mutex_);
    num_open_ = connections_.size();
    if (num_open_ == 0) idle_.notify_all();
  }

  void Sweep() {
    Clock::time_point now = Clock::now();
    for (const auto& connection : Snapshot()) connection->Sweep(now);
    sweep_timer_.expires_after(kSweepInterval);
    sweep_timer_.async_wait([this](error_code error) {
      if (!error) Sweep();
    });
  }

  ListenOptions options_;
  ConnectionContext context_;
  std::unordered_set<std::shared_ptr<Connection>> connections_;
  asio::io_context io_{1};
  std::optional<asio::ssl::context> tls_;
  std::optional<Acceptor> acceptor_;
  bool accepting_ = false;
  asio::steady_timer sweep_timer_;
  asio::steady_timer accept_timer_;
  int port_ = 0;
  std::thread thread_;

  std::mutex mutex_;
  std::condition_variable idle_;
  size_t num_open_ = 0;  // for WaitUntilIdle
};

}  // namespace

absl::StatusOr<std::unique_ptr<HttpServer>> HttpServer::Create(const ListenOptions& options,
                                                               HttpHandler* handler) {
  auto server = std::make_unique<AsioHttpServer>(options, handler);
  RETURN_IF_ERROR(server->Listen());
  return server;
}

}  // namespace fulgur::server

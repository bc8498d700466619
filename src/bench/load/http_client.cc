#include "bench/load/http_client.h"

#include <openssl/ssl.h>

#include <algorithm>
#include <array>
#include <boost/asio.hpp>
#include <boost/asio/ssl.hpp>
#include <boost/beast/http.hpp>
#include <chrono>
#include <deque>
#include <optional>
#include <unordered_map>

#include "base/status_macros.h"
#include "bench/load/clock.h"
#include "fmt/format.h"

namespace fulgur::bench {
namespace {

namespace asio = boost::asio;
namespace http = boost::beast::http;
using boost::system::error_code;
using tcp = asio::ip::tcp;
using IoCallback = std::function<void(error_code, size_t)>;

constexpr size_t kReadBytes = 16 << 10;
constexpr uint32_t kMaxHeaderBytes = 256 << 10;
constexpr int64_t kSweepNs = 20'000'000;

// ---- The body of an answer goes straight to its observer ----------------------------------------

struct BodySink {
  CallObserver* observer = nullptr;
  int64_t time_ns = 0;  // of the read being parsed
};

struct SinkBody {
  using value_type = BodySink;
  class reader {
   public:
    template <bool kIsRequest, class Fields>
    reader(http::header<kIsRequest, Fields>&, value_type& sink) : sink_(sink) {}
    void init(const boost::optional<uint64_t>&, error_code& error) { error = {}; }
    template <class Buffers>
    size_t put(const Buffers& buffers, error_code& error) {
      error = {};
      size_t size = 0;
      for (auto it = asio::buffer_sequence_begin(buffers); it != asio::buffer_sequence_end(buffers);
           ++it) {
        const asio::const_buffer piece = *it;
        sink_.observer->OnBody({static_cast<const char*>(piece.data()), piece.size()},
                               sink_.time_ns);
        size += piece.size();
      }
      return size;
    }
    void finish(error_code& error) { error = {}; }

   private:
    value_type& sink_;
  };
};

// ---- A connection: plain or TLS ----------------------------------------------------------------

class Connection {
 public:
  Connection(asio::io_context& context, asio::ssl::context* tls, const std::string& host)
      : socket_(context) {
    if (tls == nullptr) return;
    tls_.emplace(socket_, *tls);
    SSL_set_tlsext_host_name(tls_->native_handle(), host.c_str());
  }

  void Connect(const tcp::resolver::results_type& addresses, std::function<void(error_code)> done) {
    asio::async_connect(socket_, addresses,
                        [this, done = std::move(done)](error_code error, const tcp::endpoint&) {
                          if (error) return done(error);
                          error_code ignored;
                          socket_.set_option(tcp::no_delay(true), ignored);
                          if (!tls_) return done(error);
                          tls_->async_handshake(asio::ssl::stream_base::client, done);
                        });
  }

  template <class Request, class Done>
  void Write(Request& request, Done done) {
    if (tls_) {
      http::async_write(*tls_, request, std::move(done));
    } else {
      http::async_write(socket_, request, std::move(done));
    }
  }

  template <class Done>
  void Read(Done done) {
    const auto space = asio::buffer(bytes_.data() + kept_, bytes_.size() - kept_);
    if (tls_) {
      tls_->async_read_some(space, std::move(done));
    } else {
      socket_.async_read_some(space, std::move(done));
    }
  }

  // Unread bytes at the front of the buffer, `added` of them new.
  std::string_view Unread(size_t added) { return {bytes_.data(), kept_ + added}; }

  // Keeps what the parser wants to see again, with more behind it.
  void Keep(std::string_view rest) {
    std::copy(rest.begin(), rest.end(), bytes_.begin());
    kept_ = rest.size();
    if (bytes_.size() - kept_ < kReadBytes / 2) bytes_.resize(bytes_.size() * 2);
  }

  void Close() {
    error_code ignored;
    socket_.close(ignored);
  }

  bool used = false;  // has carried a whole exchange

 private:
  tcp::socket socket_;
  std::optional<asio::ssl::stream<tcp::socket&>> tls_;
  std::vector<char> bytes_ = std::vector<char>(kReadBytes);
  size_t kept_ = 0;
};

using ConnectionPtr = std::shared_ptr<Connection>;

struct ActiveCall {
  CallId id = 0;
  HttpCall call;
  CallObserver* observer = nullptr;
  ConnectionPtr connection;
  http::request<http::string_body> request;
  std::optional<http::response_parser<SinkBody>> parser;
  int64_t deadline_ns = 0;
  int64_t connect_deadline_ns = 0;  // 0: connected
  bool answered = false;            // a byte of the answer came
  bool headers_seen = false;
  bool repeated = false;
  bool written = false;  // the whole request is out
  bool ended = false;
};

using CallPtr = std::shared_ptr<ActiveCall>;

struct Target {
  HttpTarget address;
  tcp::resolver::results_type endpoints;
  std::vector<ConnectionPtr> idle;
  std::unordered_map<std::string, ConnectionPtr> sticky;
};

class BeastClient : public HttpClient {
 public:
  BeastClient(HttpClientOptions options, std::vector<Target> targets,
              std::unique_ptr<asio::io_context> context)
      : options_(options),
        context_(std::move(context)),
        tls_(asio::ssl::context::tls_client),
        targets_(std::move(targets)) {
    error_code ignored;
    tls_.set_default_verify_paths(ignored);
    tls_.set_verify_mode(options_.verify_tls ? asio::ssl::verify_peer : asio::ssl::verify_none);
    Sweep();
  }

  CallId Start(HttpCall call, CallObserver* observer) override;
  void Cancel(CallId id) override;
  void RunAt(int64_t time_ns, std::function<void()> task) override;
  void Post(std::function<void()> task) override { asio::post(*context_, std::move(task)); }
  void Run() override {
    const auto guard = asio::make_work_guard(*context_);
    context_->restart();
    context_->run();
  }
  void Stop() override { context_->stop(); }

 private:
  ConnectionPtr TakeIdle(Target& target, const std::string& conversation);
  void Connect(const CallPtr& call);
  void Send(const CallPtr& call);
  void ReadMore(const CallPtr& call);
  void Parse(const CallPtr& call, size_t added, int64_t now);
  void OnReadError(const CallPtr& call, error_code error, int64_t now);
  void Complete(const CallPtr& call, int64_t now);
  void End(const CallPtr& call, CallOutcome outcome, std::string detail, int64_t now);
  bool Repeat(const CallPtr& call);
  void Sweep();

  HttpClientOptions options_;
  std::unique_ptr<asio::io_context> context_;
  asio::ssl::context tls_;
  std::vector<Target> targets_;
  std::unordered_map<CallId, CallPtr> calls_;
  CallId next_id_ = 1;
};

void BeastClient::RunAt(int64_t time_ns, std::function<void()> task) {
  // libstdc++'s steady clock is CLOCK_MONOTONIC.
  const std::chrono::steady_clock::time_point time{std::chrono::nanoseconds(time_ns)};
  auto timer = std::make_shared<asio::steady_timer>(*context_, time);
  timer->async_wait([timer, task = std::move(task)](error_code error) {
    if (!error) task();
  });
}

ConnectionPtr BeastClient::TakeIdle(Target& target, const std::string& conversation) {
  if (options_.reuse == ConnectionReuse::kNever) return nullptr;
  if (options_.reuse == ConnectionReuse::kSticky && !conversation.empty()) {
    const auto found = target.sticky.find(conversation);
    if (found == target.sticky.end()) return nullptr;
    ConnectionPtr connection = std::move(found->second);
    target.sticky.erase(found);
    return connection;
  }
  if (target.idle.empty()) return nullptr;
  ConnectionPtr connection = std::move(target.idle.back());
  target.idle.pop_back();
  return connection;
}

CallId BeastClient::Start(HttpCall call, CallObserver* observer) {
  auto active = std::make_shared<ActiveCall>();
  active->id = next_id_++;
  active->call = std::move(call);
  active->observer = observer;
  const int64_t now = MonotonicNs();
  active->deadline_ns = now + active->call.timeout_ns;
  Target& target = targets_[active->call.target];
  auto& request = active->request;
  request.version(11);
  request.method_string(active->call.method);
  request.target(active->call.path);
  request.set(http::field::host, fmt::format("{}:{}", target.address.host, target.address.port));
  for (const auto& [name, value] : active->call.headers) request.insert(name, value);
  request.body() = std::move(active->call.body);
  request.prepare_payload();
  calls_.emplace(active->id, active);
  active->connection = TakeIdle(target, active->call.conversation);
  if (active->connection) {
    Send(active);
  } else {
    Connect(active);
  }
  return active->id;
}

void BeastClient::Connect(const CallPtr& call) {
  Target& target = targets_[call->call.target];
  call->connection = std::make_shared<Connection>(*context_, target.address.tls ? &tls_ : nullptr,
                                                  target.address.host);
  call->connect_deadline_ns = MonotonicNs() + options_.connect_timeout_ns;
  const ConnectionPtr connection = call->connection;
  connection->Connect(target.endpoints, [this, call, connection](error_code error) {
    if (call->ended || call->connection != connection) return;
    call->connect_deadline_ns = 0;
    if (error) return End(call, CallOutcome::kConnectFailed, error.message(), MonotonicNs());
    Send(call);
  });
}

void BeastClient::Send(const CallPtr& call) {
  call->written = false;
  call->parser.emplace();
  call->parser->eager(false);  // stops behind the header, so that it is told before the body
  call->parser->body_limit(boost::none);
  call->parser->header_limit(kMaxHeaderBytes);
  call->parser->skip(call->request.method() == http::verb::head);
  call->parser->get().body().observer = call->observer;
  const ConnectionPtr connection = call->connection;
  call->observer->OnStart(MonotonicNs(), call->repeated);
  connection->Write(call->request, [this, call, connection](error_code error, size_t) {
    // An answer may come, and even end, before the request is out.
    if (call->connection == connection) call->written = !error;
    if (error && !call->ended && call->connection == connection && !Repeat(call)) {
      End(call, CallOutcome::kClosed, error.message(), MonotonicNs());
    }
  });
  ReadMore(call);
}

void BeastClient::ReadMore(const CallPtr& call) {
  const ConnectionPtr connection = call->connection;
  connection->Read([this, call, connection](error_code error, size_t size) {
    const int64_t now = MonotonicNs();
    if (call->ended || call->connection != connection) return;
    if (error) return OnReadError(call, error, now);
    call->answered = true;
    Parse(call, size, now);
  });
}

void BeastClient::Parse(const CallPtr& call, size_t added, int64_t now) {
  auto& parser = *call->parser;
  const ConnectionPtr connection = call->connection;
  std::string_view rest = connection->Unread(added);
  parser.get().body().time_ns = now;
  while (!rest.empty() && !parser.is_done()) {
    error_code error;
    const size_t used = parser.put(asio::buffer(rest.data(), rest.size()), error);
    rest.remove_prefix(used);
    if (call->ended) return;
    if (parser.is_header_done() && !call->headers_seen) {
      call->headers_seen = true;
      parser.eager(true);
      const auto& head = parser.get();
      call->observer->OnHeaders(
          static_cast<int>(head.result_int()), {head.reason().data(), head.reason().size()},
          {head[http::field::content_type].data(), head[http::field::content_type].size()}, now);
    }
    if (error == http::error::need_more) break;
    if (error) return End(call, CallOutcome::kGarbage, error.message(), now);
    if (used == 0) break;
  }
  if (parser.is_done()) {
    connection->Keep({});
    return Complete(call, now);
  }
  connection->Keep(rest);
  ReadMore(call);
}

void BeastClient::OnReadError(const CallPtr& call, error_code error, int64_t now) {
  const bool ended = error == asio::error::eof || error == asio::ssl::error::stream_truncated;
  if (ended && call->headers_seen) {
    error_code parse_error;
    call->parser->put_eof(parse_error);  // an answer without a length ends like this
    if (!parse_error && call->parser->is_done()) return Complete(call, now);
  }
  if (Repeat(call)) return;
  End(call, CallOutcome::kClosed,
      ended ? "the server closed the connection before the answer was complete" : error.message(),
      now);
}

// A server may close an idle connection at the very moment it is used again. Only if nothing of an
// answer came, and only once.
bool BeastClient::Repeat(const CallPtr& call) {
  if (!call->connection->used || call->answered || call->repeated) return false;
  call->repeated = true;
  call->connection->Close();
  Connect(call);
  return true;
}

void BeastClient::Complete(const CallPtr& call, int64_t now) {
  Target& target = targets_[call->call.target];
  const ConnectionPtr connection = call->connection;
  connection->used = true;
  if (!call->written || !call->parser->keep_alive() || options_.reuse == ConnectionReuse::kNever) {
    connection->Close();
  } else if (options_.reuse == ConnectionReuse::kSticky && !call->call.conversation.empty()) {
    target.sticky[call->call.conversation] = connection;
  } else {
    target.idle.push_back(connection);
  }
  call->connection = nullptr;
  End(call, CallOutcome::kComplete, "", now);
}

void BeastClient::End(const CallPtr& call, CallOutcome outcome, std::string detail, int64_t now) {
  if (call->ended) return;
  call->ended = true;
  if (call->connection) call->connection->Close();
  calls_.erase(call->id);
  call->observer->OnEnd({outcome, std::move(detail), now});
}

void BeastClient::Cancel(CallId id) {
  const auto found = calls_.find(id);
  if (found == calls_.end()) return;
  const CallPtr call = found->second;
  End(call, CallOutcome::kCancelled, "", MonotonicNs());
}

void BeastClient::Sweep() {
  const int64_t now = MonotonicNs();
  std::vector<CallPtr> late;
  for (const auto& [id, call] : calls_) {
    if (call->deadline_ns <= now ||
        (call->connect_deadline_ns > 0 && call->connect_deadline_ns <= now)) {
      late.push_back(call);
    }
  }
  for (const CallPtr& call : late) {
    if (call->deadline_ns <= now) {
      End(call, CallOutcome::kTimedOut, "", now);
    } else {
      End(call, CallOutcome::kConnectFailed, "no connection within the time allowed", now);
    }
  }
  RunAt(now + kSweepNs, [this] { Sweep(); });
}

class CollectingObserver : public CallObserver {
 public:
  explicit CollectingObserver(HttpClient& client) : client_(client) {}
  void OnStart(int64_t, bool) override { answer.body.clear(); }
  void OnHeaders(int status, std::string_view, std::string_view, int64_t) override {
    answer.status = status;
  }
  void OnBody(std::string_view piece, int64_t) override { answer.body += piece; }
  void OnEnd(const CallEnd& call_end) override {
    end = call_end;
    client_.Stop();
  }

  SimpleAnswer answer;
  CallEnd end;

 private:
  HttpClient& client_;
};

}  // namespace

absl::StatusOr<HttpTarget> ParseUrl(const std::string& url) {
  HttpTarget target;
  std::string rest = url;
  if (rest.starts_with("https://")) {
    target.tls = true;
    rest = rest.substr(8);
  } else if (rest.starts_with("http://")) {
    rest = rest.substr(7);
  } else if (rest.find("://") != std::string::npos) {
    return absl::InvalidArgumentError(
        fmt::format("--url: \"{}\" is neither http:// nor https://", url));
  }
  const size_t slash = rest.find('/');
  if (slash != std::string::npos) target.path = rest.substr(slash);
  while (target.path.ends_with('/')) target.path.pop_back();
  std::string address = rest.substr(0, slash);
  const size_t colon = address.rfind(':');
  const bool bracketed = address.ends_with(']');
  if (colon != std::string::npos && !bracketed) {
    target.port = address.substr(colon + 1);
    address.resize(colon);
  }
  if (address.starts_with('[') && address.ends_with(']')) {
    address = address.substr(1, address.size() - 2);
  }
  target.host = address;
  if (target.port.empty()) target.port = target.tls ? "443" : "80";
  const bool digits =
      target.port.size() <= 5 && std::all_of(target.port.begin(), target.port.end(),
                                             [](char c) { return c >= '0' && c <= '9'; });
  if (target.host.empty() || !digits) {
    return absl::InvalidArgumentError(
        fmt::format("--url: \"{}\" is not an address such as http://127.0.0.1:8000", url));
  }
  return target;
}

absl::StatusOr<std::unique_ptr<HttpClient>> HttpClient::Create(std::vector<HttpTarget> targets,
                                                               HttpClientOptions options) {
  auto context = std::make_unique<asio::io_context>(1);
  tcp::resolver resolver(*context);
  std::vector<Target> resolved;
  for (HttpTarget& address : targets) {
    error_code error;
    auto endpoints = resolver.resolve(address.host, address.port, error);
    if (error) {
      return absl::UnavailableError(
          fmt::format("--url: the host {} is not known: {}", address.host, error.message()));
    }
    resolved.push_back({std::move(address), std::move(endpoints), {}, {}});
  }
  return std::make_unique<BeastClient>(options, std::move(resolved), std::move(context));
}

absl::StatusOr<SimpleAnswer> Fetch(HttpClient& client, HttpCall call) {
  CollectingObserver observer(client);
  const std::string what = fmt::format("{} {}", call.method, call.path);
  client.Start(std::move(call), &observer);
  client.Run();
  switch (observer.end.outcome) {
    case CallOutcome::kComplete:
      return std::move(observer.answer);
    case CallOutcome::kTimedOut:
      return absl::DeadlineExceededError(fmt::format("{}: no answer in time", what));
    default:
      return absl::UnavailableError(fmt::format("{}: {}", what, observer.end.detail));
  }
}

}  // namespace fulgur::bench

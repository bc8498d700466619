// Connections over Boost.Asio and Beast. This is the only file that includes them: they take long
// to compile, and nothing else should care which library moves the bytes.
#include <fmt/format.h>
#include <openssl/ssl.h>
#include <spdlog/spdlog.h>
#include <sys/socket.h>
#include <sys/stat.h>

// Tasks reach the loop through a mutex, which orders memory; further fences are of no use, and the
// thread sanitizer does not understand them.
#define BOOST_ASIO_DISABLE_FENCED_BLOCK

#include <array>
#include <boost/asio.hpp>
#include <boost/asio/ssl.hpp>
#include <boost/beast/http.hpp>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <filesystem>
#include <mutex>
#include <optional>
#include <thread>
#include <unordered_set>
#include <variant>

#include "absl/time/clock.h"
#include "base/status_macros.h"
#include "server/http.h"

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

namespace asio = boost::asio;
namespace http = boost::beast::http;
using boost::system::error_code;
using Clock = std::chrono::steady_clock;
using Socket = asio::generic::stream_protocol::socket;
using IoCallback = std::function<void(error_code, size_t)>;

constexpr size_t kReadPieceBytes = 16 << 10;
constexpr size_t kMaxPipelinedBytes = 256 << 10;  // read ahead while a request is being answered
constexpr int64_t kMaxBodiesAtOnce = 4;           // in largest bodies
constexpr auto kSweepInterval = std::chrono::milliseconds(200);
constexpr auto kLingerTime = std::chrono::seconds(2);
constexpr auto kHandshakeTime = std::chrono::seconds(10);

Clock::duration ToClock(absl::Duration duration) { return absl::ToChronoNanoseconds(duration); }

// ---- Wires: plain sockets and TLS behind one face ------------------------------------------

class Wire {
 public:
  virtual ~Wire() = default;
  virtual void Handshake(std::function<void(error_code)> done) = 0;
  virtual void ReadSome(asio::mutable_buffer into, IoCallback done) = 0;
  virtual void WriteSome(asio::const_buffer from, IoCallback done) = 0;
  virtual Socket& socket() = 0;

  // "address:port" of the client; empty for a unix socket.
  std::string peer() {
    error_code ignored;
    auto remote = socket().remote_endpoint(ignored);
    if (remote.protocol().family() != AF_INET && remote.protocol().family() != AF_INET6) return "";
    asio::ip::tcp::endpoint endpoint;
    endpoint.resize(remote.size());
    std::memcpy(endpoint.data(), remote.data(), remote.size());
    return fmt::format("{}:{}", endpoint.address().to_string(ignored), endpoint.port());
  }

  // No more bytes will be written; the peer may still be read.
  void ShutdownWrites() {
    error_code ignored;
    socket().shutdown(Socket::shutdown_send, ignored);
  }
  void Close() {
    error_code ignored;
    socket().close(ignored);
  }
};

class PlainWire : public Wire {
 public:
  explicit PlainWire(Socket socket) : socket_(std::move(socket)) {}
  void Handshake(std::function<void(error_code)> done) override {
    asio::post(socket_.get_executor(), [done = std::move(done)] { done({}); });
  }
  void ReadSome(asio::mutable_buffer into, IoCallback done) override {
    socket_.async_read_some(into, std::move(done));
  }
  void WriteSome(asio::const_buffer from, IoCallback done) override {
    socket_.async_write_some(from, std::move(done));
  }
  Socket& socket() override { return socket_; }

 private:
  Socket socket_;
};

class TlsWire : public Wire {
 public:
  TlsWire(Socket socket, asio::ssl::context& context) : stream_(std::move(socket), context) {}
  void Handshake(std::function<void(error_code)> done) override {
    stream_.async_handshake(asio::ssl::stream_base::server, std::move(done));
  }
  void ReadSome(asio::mutable_buffer into, IoCallback done) override {
    stream_.async_read_some(into, std::move(done));
  }
  void WriteSome(asio::const_buffer from, IoCallback done) override {
    stream_.async_write_some(from, std::move(done));
  }
  Socket& socket() override { return stream_.next_layer(); }

 private:
  asio::ssl::stream<Socket> stream_;
};

// Collects a body as it comes. Beast's own string_body sets memory aside for the length that the
// header claims.
struct GrowingBody {
  using value_type = std::string;
  class reader {
   public:
    template <bool kIsRequest, class Fields>
    reader(http::header<kIsRequest, Fields>&, value_type& body) : body_(body) {}
    void init(const boost::optional<uint64_t>&, error_code& error) { error = {}; }
    template <class Buffers>
    size_t put(const Buffers& buffers, error_code& error) {
      error = {};
      size_t bytes = 0;
      for (auto it = asio::buffer_sequence_begin(buffers); it != asio::buffer_sequence_end(buffers);
           ++it) {
        asio::const_buffer piece = *it;
        body_.append(static_cast<const char*>(piece.data()), piece.size());
        bytes += piece.size();
      }
      return bytes;
    }
    void finish(error_code& error) { error = {}; }

   private:
    value_type& body_;
  };
};

// ---- Text of heads and paths -----------------------------------------------------------------

int HexDigit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  c = static_cast<char>(c | 0x20);
  return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

std::string DecodePath(std::string_view path) {
  std::string decoded;
  for (size_t i = 0; i < path.size(); ++i) {
    int high = path[i] == '%' && i + 2 < path.size() ? HexDigit(path[i + 1]) : -1;
    int low = high >= 0 ? HexDigit(path[i + 2]) : -1;
    decoded += low >= 0 ? static_cast<char>(high * 16 + low) : path[i];
    if (low >= 0) i += 2;
  }
  return decoded;
}

HttpRequest ToRequest(http::request<GrowingBody>&& message) {
  HttpRequest request;
  request.method = std::string(message.method_string());
  std::string_view target(message.target().data(), message.target().size());
  size_t mark = target.find('?');
  request.path = DecodePath(target.substr(0, mark));
  if (mark != std::string_view::npos) request.query = std::string(target.substr(mark + 1));
  for (const auto& field : message) {
    request.headers.emplace_back(std::string(field.name_string()), std::string(field.value()));
  }
  request.body = std::move(message.body());
  return request;
}

bool MayHaveBody(int status) { return status >= 200 && status != 204 && status != 304; }

std::string HeadText(int status, const HeaderList& headers) {
  std::string_view phrase = http::obsolete_reason(static_cast<http::status>(status));
  std::string head =
      fmt::format("HTTP/1.1 {} {}\r\nDate: {}\r\nServer: fulgur\r\n", status, phrase,
                  absl::FormatTime("%a, %d %b %Y %H:%M:%S GMT", absl::Now(), absl::UTCTimeZone()));
  for (const auto& [name, value] : headers) head += fmt::format("{}: {}\r\n", name, value);
  return head;
}

// ---- One connection --------------------------------------------------------------------------

class Connection;

// What a connection needs from the server that owns it.
struct ConnectionContext {
  const ListenOptions* options;
  HttpHandler* handler;
  bool stopping = false;
  int64_t body_bytes = 0;  // of all requests that are still arriving
  std::function<void(Connection*)> on_closed;
};

// Reads requests one after the other and writes their answers. While a request is being answered,
// one read stays outstanding: it sees the client leave, and keeps what is sent ahead for later.
class Connection : public std::enable_shared_from_this<Connection> {
 public:
  Connection(std::unique_ptr<Wire> wire, ConnectionContext* context)
      : wire_(std::move(wire)), context_(context) {}

  void Start() {
    SetDeadline(kHandshakeTime);
    wire_->Handshake([self = shared_from_this()](error_code error) {
      if (error) return self->Close();
      self->AwaitRequest();
    });
  }

  // Called every now and then: ends what takes too long.
  void Sweep(Clock::time_point now) {
    if (now < deadline_ || state_ == State::kClosed) return;
    if (state_ == State::kHeader || state_ == State::kBody) {
      Reject(408, "The request did not arrive in time.");
    } else {
      Close();
    }
  }

  // Closes now if nothing is under way, else after the answer.
  void CloseWhenIdle() {
    keep_alive_ = false;
    if (state_ == State::kIdle) Close();
  }

  void Close() {
    if (state_ == State::kClosed) return;
    auto self = shared_from_this();
    state_ = State::kClosed;
    CountBody(-body_bytes_);
    wire_->Close();
    NotifyDisconnect();
    context_->on_closed(this);
  }

 private:
  friend class Exchange;
  enum class State {
    kHandshake,
    kIdle,       // no byte of a request yet
    kHeader,     // in the middle of a header
    kBody,       // in the middle of a body
    kAnswering,  // the handler has the request
    kDraining,   // the last answer is out; what the client still sends is thrown away
    kClosed,
  };

  void SetDeadline(Clock::duration from_now) { deadline_ = Clock::now() + from_now; }
  void SetDeadline(absl::Duration from_now) { SetDeadline(ToClock(from_now)); }
  void ClearDeadline() { deadline_ = Clock::time_point::max(); }

  // -- reading --

  void AwaitRequest() {
    state_ = State::kIdle;
    SetDeadline(context_->options->keep_alive_timeout);
    parser_.emplace();
    parser_->header_limit(static_cast<uint32_t>(context_->options->max_header_bytes));
    parser_->body_limit(static_cast<uint64_t>(context_->options->max_body_bytes));
    Parse();
    Read();
  }

  bool WantsToRead() const {
    if (state_ == State::kClosed || state_ == State::kHandshake) return false;
    return state_ != State::kAnswering || input().size() < kMaxPipelinedBytes;
  }

  void Read() {
    if (reading_ || !WantsToRead()) return;
    reading_ = true;
    wire_->ReadSome(asio::buffer(piece_),
                    [self = shared_from_this()](error_code error, size_t bytes) {
                      self->reading_ = false;
                      self->OnRead(error, bytes);
                    });
  }

  void OnRead(error_code error, size_t bytes) {
    if (error) return Close();
    if (state_ != State::kDraining) {
      input_.erase(0, std::exchange(input_begin_, 0));
      input_.append(piece_.data(), bytes);
      if (state_ == State::kBody) SetDeadline(context_->options->body_timeout);
      Parse();
    }
    Read();
  }

  // Bytes that have been read and not yet parsed.
  std::string_view input() const { return std::string_view(input_).substr(input_begin_); }
  void Consume(size_t bytes) {
    input_begin_ += bytes;
    if (input_begin_ < input_.size()) return;
    input_.clear();
    input_begin_ = 0;
  }

  // Feeds what has been read to the parser, up to the end of one request.
  void Parse() {
    while (IsReading() && !input().empty()) {
      if (state_ == State::kIdle) {
        state_ = State::kHeader;
        SetDeadline(context_->options->header_timeout);
      }
      error_code error;
      size_t used = parser_->put(asio::buffer(input().data(), input().size()), error);
      Consume(used);
      if (state_ == State::kBody) CountBody(static_cast<int64_t>(used));
      if (error && error != http::error::need_more) return RejectParse(error);
      if (state_ == State::kHeader && parser_->is_header_done()) OnHeader();
      if (context_->body_bytes > kMaxBodiesAtOnce * context_->options->max_body_bytes) {
        return Reject(503, "Too many large requests are arriving at once.");
      }
      if (IsReading() && parser_->is_done()) return Dispatch();
      if (error == http::error::need_more) return;
    }
  }

  void CountBody(int64_t bytes) {
    body_bytes_ += bytes;
    context_->body_bytes += bytes;
  }

  bool IsReading() const {
    return state_ == State::kIdle || state_ == State::kHeader || state_ == State::kBody;
  }

  void OnHeader() {
    const auto& fields = parser_->get();
    if (std::distance(fields.begin(), fields.end()) > context_->options->max_header_count) {
      return Reject(431, fmt::format("The request has more than {} headers.",
                                     context_->options->max_header_count));
    }
    state_ = State::kBody;
    SetDeadline(context_->options->body_timeout);
    parser_->eager(true);
    auto expect = fields[http::field::expect];
    if (EqualsIgnoreCase({expect.data(), expect.size()}, "100-continue") && !parser_->is_done()) {
      Queue("HTTP/1.1 100 Continue\r\n\r\n");
    }
  }

  void RejectParse(error_code error) {
    if (error == http::error::body_limit) {
      return Reject(413, fmt::format("The request body is larger than {} bytes.",
                                     context_->options->max_body_bytes));
    }
    if (error == http::error::header_limit) {
      return Reject(431, fmt::format("The request header is larger than {} bytes.",
                                     context_->options->max_header_bytes));
    }
    Reject(400, fmt::format("Invalid HTTP request received: {}.", error.message()));
  }

  void Dispatch();

  // Answers something that is no request, and hangs up.
  void Reject(int status, std::string_view message);

  // -- writing --

  // Bytes leave after the running callback returns, so that all it writes goes out together.
  void Queue(std::string_view bytes) {
    unsent_.append(bytes);
    if (writing_ || flush_scheduled_) return;
    flush_scheduled_ = true;
    asio::post(wire_->socket().get_executor(), [self = shared_from_this()] {
      self->flush_scheduled_ = false;
      self->Flush();
    });
  }

  size_t unsent_bytes() const { return unsent_.size() + sending_.size() - sent_; }

  void Flush() {
    if (writing_ || state_ == State::kClosed) return;
    if (sent_ == sending_.size()) {
      sending_.clear();
      sent_ = 0;
      std::swap(sending_, unsent_);
    }
    if (sending_.empty()) return OnAllSent();
    writing_ = true;
    write_deadline_ = Clock::now() + ToClock(context_->options->write_timeout);
    wire_->WriteSome(asio::buffer(sending_.data() + sent_, sending_.size() - sent_),
                     [self = shared_from_this()](error_code error, size_t bytes) {
                       self->writing_ = false;
                       if (error) return self->Close();
                       self->sent_ += bytes;
                       self->Flush();
                     });
  }

  void OnAllSent() {
    if (sending_.capacity() > kMaxPipelinedBytes) sending_ = {};
    if (!answer_complete_) return;
    answer_complete_ = false;
    if (keep_alive_) return AwaitRequest();
    Linger();
  }

  // A close while unread bytes wait would reset the connection and may destroy the answer on its
  // way, so the client gets a moment to read it and hang up.
  void Linger() {
    state_ = State::kDraining;
    Consume(input().size());
    SetDeadline(kLingerTime);
    wire_->ShutdownWrites();
    Read();
  }

  void AnswerIsComplete() {
    disconnect_callback_ = nullptr;
    answer_complete_ = true;
    Queue("");
  }

  void NotifyDisconnect() {
    if (auto callback = std::exchange(disconnect_callback_, nullptr)) callback();
  }

 public:
  bool WriteTimedOut(Clock::time_point now) const { return writing_ && now > write_deadline_; }

 private:
  std::unique_ptr<Wire> wire_;
  ConnectionContext* context_;
  State state_ = State::kHandshake;
  bool keep_alive_ = true;
  bool reading_ = false;
  std::array<char, kReadPieceBytes> piece_;  // the read under way goes here
  std::string input_;
  size_t input_begin_ = 0;
  int64_t body_bytes_ = 0;
  std::optional<http::request_parser<GrowingBody>> parser_;
  Clock::time_point deadline_ = Clock::time_point::max();

  std::string unsent_;   // to be sent next
  std::string sending_;  // being sent
  size_t sent_ = 0;      // bytes of it that are gone
  bool writing_ = false;
  bool flush_scheduled_ = false;
  bool answer_complete_ = false;
  Clock::time_point write_deadline_;
  std::function<void()> disconnect_callback_;
};

// The answer to one request of a connection.
class Exchange : public ResponseStream {
 public:
  Exchange(std::shared_ptr<Connection> connection, bool http_1_1, bool is_head)
      : connection_(std::move(connection)), http_1_1_(http_1_1), is_head_(is_head) {}

  // A handler that drops its answer must not leave the client waiting.
  ~Exchange() override {
    if (Alive()) connection_->Close();
  }

  void Send(HttpResponse response) override {
    if (!Alive()) return;
    std::string head = HeadText(response.status, response.headers);
    if (MayHaveBody(response.status)) {
      head += fmt::format("Content-Length: {}\r\n", response.body.size());
    }
    EndHead(&head);
    connection_->Queue(head);
    if (!is_head_ && MayHaveBody(response.status)) connection_->Queue(response.body);
    Complete();
  }

  void Start(int status, HeaderList headers) override {
    if (!Alive()) return;
    std::string head = HeadText(status, headers);
    if (http_1_1_) {
      head += "Transfer-Encoding: chunked\r\n";
    } else {
      connection_->keep_alive_ = false;  // the end of the connection is the end of the body
    }
    EndHead(&head);
    connection_->Queue(head);
  }

  void Write(std::string_view piece) override {
    if (!Alive() || piece.empty() || is_head_) return;
    if (connection_->unsent_bytes() >
        static_cast<size_t>(connection_->context_->options->max_unsent_bytes)) {
      return connection_->Close();
    }
    if (!http_1_1_) return connection_->Queue(piece);
    connection_->Queue(fmt::format("{:x}\r\n", piece.size()));
    connection_->Queue(piece);
    connection_->Queue("\r\n");
  }

  void Finish() override {
    if (!Alive()) return;
    if (http_1_1_ && !is_head_) connection_->Queue("0\r\n\r\n");
    Complete();
  }

  void Break() override {
    if (!Alive()) return;
    connection_->keep_alive_ = false;
    Complete();  // what was written goes out first, so the client sees where the answer broke off
  }

  void OnDisconnect(std::function<void()> callback) override {
    if (done_) return;
    if (connection_->state_ == Connection::State::kClosed) return callback();
    connection_->disconnect_callback_ = std::move(callback);
  }

 private:
  bool Alive() const { return !done_ && connection_->state_ != Connection::State::kClosed; }

  void EndHead(std::string* head) {
    if (connection_->context_->stopping) connection_->keep_alive_ = false;
    if (!connection_->keep_alive_) {
      *head += "Connection: close\r\n";
    } else if (!http_1_1_) {
      *head += "Connection: keep-alive\r\n";
    }
    *head += "\r\n";
  }

  void Complete() {
    done_ = true;
    std::exchange(connection_, nullptr)->AnswerIsComplete();
  }

  std::shared_ptr<Connection> connection_;
  bool http_1_1_;
  bool is_head_;
  bool done_ = false;
};

void Connection::Dispatch() {
  state_ = State::kAnswering;
  CountBody(-body_bytes_);
  ClearDeadline();
  keep_alive_ = parser_->keep_alive() && !context_->stopping;
  bool http_1_1 = parser_->get().version() >= 11;
  bool is_head = parser_->get().method() == http::verb::head;
  auto exchange = std::make_shared<Exchange>(shared_from_this(), http_1_1, is_head);
  HttpRequest request = ToRequest(parser_->release());
  request.peer = wire_->peer();
  parser_.reset();
  context_->handler->Handle(std::move(request), std::move(exchange));
}

void Connection::Reject(int status, std::string_view message) {
  state_ = State::kAnswering;
  CountBody(-body_bytes_);
  parser_.reset();
  ClearDeadline();
  keep_alive_ = false;
  Exchange(shared_from_this(), true, false).Send(context_->handler->ProtocolError(status, message));
}

// ---- The server ------------------------------------------------------------------------------

using Acceptor = std::variant<asio::ip::tcp::acceptor, asio::local::stream_protocol::acceptor>;

absl::Status ListenError(const error_code& error, std::string_view where) {
  return absl::UnavailableError(fmt::format("Cannot listen on {}: {}.", where, error.message()));
}

absl::StatusOr<Acceptor> ListenTcp(asio::io_context& io, const ListenOptions& options) {
  error_code error;
  std::string where = fmt::format("{}:{}", options.host.empty() ? "*" : options.host, options.port);
  asio::ip::tcp::resolver resolver(io);
  std::string host = options.host.empty() ? "0.0.0.0" : options.host;
  auto found =
      resolver.resolve(host, std::to_string(options.port), asio::ip::resolver_base::passive, error);
  if (error) return ListenError(error, where);
  asio::ip::tcp::acceptor acceptor(io);
  auto endpoint = found.begin()->endpoint();
  acceptor.open(endpoint.protocol(), error);
  if (!error) acceptor.set_option(asio::socket_base::reuse_address(true), error);
  if (!error) acceptor.bind(endpoint, error);
  if (!error) acceptor.listen(asio::socket_base::max_listen_connections, error);
  if (error) return ListenError(error, where);
  return acceptor;
}

// A socket file that nobody listens on is left over from a process that was killed.
void RemoveStaleSocket(asio::io_context& io, const std::string& path) {
  std::error_code ignored;
  if (!std::filesystem::is_socket(path, ignored)) return;
  error_code error;
  asio::local::stream_protocol::socket probe(io);
  probe.connect(asio::local::stream_protocol::endpoint(path), error);
  if (error == asio::error::connection_refused) std::filesystem::remove(path, ignored);
}

absl::StatusOr<Acceptor> ListenUnix(asio::io_context& io, const std::string& path) {
  if (path.size() >= sizeof(sockaddr_un::sun_path)) {
    return absl::InvalidArgumentError(
        fmt::format("--uds: the path is {} bytes long; at most {} are possible.", path.size(),
                    sizeof(sockaddr_un::sun_path) - 1));
  }
  RemoveStaleSocket(io, path);
  error_code error;
  asio::local::stream_protocol::acceptor acceptor(io);
  acceptor.open(asio::local::stream_protocol(), error);
  if (!error) acceptor.bind(asio::local::stream_protocol::endpoint(path), error);
  if (!error) acceptor.listen(asio::socket_base::max_listen_connections, error);
  if (error) return ListenError(error, path);
  return acceptor;
}

absl::Status TlsError(std::string_view flag, std::string_view value, const error_code& error) {
  return absl::InvalidArgumentError(
      fmt::format("{}: cannot use \"{}\": {}.", flag, value, error.message()));
}

absl::Status SetUpTls(const ListenOptions& options, asio::ssl::context& context) {
  error_code error;
  const std::string& key = options.ssl_keyfile.empty() ? options.ssl_certfile : options.ssl_keyfile;
  context.use_certificate_chain_file(options.ssl_certfile, error);
  if (error) return TlsError("--ssl-certfile", options.ssl_certfile, error);
  context.use_private_key_file(key, asio::ssl::context::pem, error);
  if (error) return TlsError("--ssl-keyfile", key, error);
  if (!options.ssl_ca_certs.empty()) {
    context.load_verify_file(options.ssl_ca_certs, error);
    if (error) return TlsError("--ssl-ca-certs", options.ssl_ca_certs, error);
  }
  if (!options.ssl_ciphers.empty() &&
      SSL_CTX_set_cipher_list(context.native_handle(), options.ssl_ciphers.c_str()) != 1) {
    return absl::InvalidArgumentError("--ssl-ciphers: OpenSSL knows no cipher of this list.");
  }
  constexpr std::array<int, 3> kModes = {
      asio::ssl::verify_none, asio::ssl::verify_peer,
      asio::ssl::verify_peer | asio::ssl::verify_fail_if_no_peer_cert};
  if (options.ssl_cert_reqs < 0 || options.ssl_cert_reqs > 2) {
    return absl::InvalidArgumentError("--ssl-cert-reqs must be 0, 1 or 2.");
  }
  context.set_verify_mode(kModes[static_cast<size_t>(options.ssl_cert_reqs)], error);
  return absl::OkStatus();
}

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
    if (!options_.ssl_certfile.empty()) {
      tls_.emplace(asio::ssl::context::tls_server);
      tls_->set_options(asio::ssl::context::no_sslv2 | asio::ssl::context::no_sslv3 |
                        asio::ssl::context::no_tlsv1 | asio::ssl::context::no_tlsv1_1);
      RETURN_IF_ERROR(SetUpTls(options_, *tls_));
    } else if (!options_.ssl_keyfile.empty()) {
      return absl::InvalidArgumentError("--ssl-keyfile needs --ssl-certfile.");
    }
    auto acceptor = options_.uds.empty() ? ListenTcp(io_, options_) : ListenUnix(io_, options_.uds);
    if (!acceptor.ok()) return acceptor.status();
    acceptor_.emplace(*std::move(acceptor));
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
    std::unique_ptr<Wire> wire;
    if (tls_) {
      wire = std::make_unique<TlsWire>(std::move(socket), *tls_);
    } else {
      wire = std::make_unique<PlainWire>(std::move(socket));
    }
    auto connection = std::make_shared<Connection>(std::move(wire), &context_);
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
    for (const auto& connection : Snapshot()) {
      if (connection->WriteTimedOut(now)) connection->Close();
      connection->Sweep(now);
    }
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

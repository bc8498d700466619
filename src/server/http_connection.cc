#include "server/http_connection.h"

#include <fmt/format.h>

#include <array>
#include <boost/beast/http.hpp>
#include <optional>
#include <string>
#include <utility>

#include "absl/time/clock.h"

namespace fulgur::server {
namespace {

namespace http = boost::beast::http;

constexpr size_t kReadPieceBytes = 16 << 10;
constexpr size_t kMaxPipelinedBytes = 256 << 10;  // read ahead while a request is being answered
constexpr int64_t kMaxBodiesAtOnce = 4;           // in largest bodies
constexpr auto kLingerTime = std::chrono::seconds(2);
constexpr auto kHandshakeTime = std::chrono::seconds(10);

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
// Reads requests one after the other and writes their answers. While a request is being answered,
// one read stays outstanding: it sees the client leave, and keeps what is sent ahead for later.
class HttpConnection : public Connection {
 public:
  HttpConnection(std::unique_ptr<Wire> wire, ConnectionContext* context)
      : wire_(std::move(wire)), context_(context) {}

  void Start() override {
    SetDeadline(kHandshakeTime);
    wire_->Handshake([self = Self()](error_code error) {
      if (error) return self->Close();
      self->AwaitRequest();
    });
  }

  void Sweep(Clock::time_point now) override {
    if (writing_ && now > write_deadline_) return Close();
    if (now < deadline_ || state_ == State::kClosed) return;
    if (state_ == State::kHeader || state_ == State::kBody) {
      Reject(408, "The request did not arrive in time.");
    } else {
      Close();
    }
  }

  void CloseWhenIdle() override {
    keep_alive_ = false;
    if (state_ == State::kIdle) Close();
  }

  void Close() override {
    if (state_ == State::kClosed) return;
    auto self = Self();
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

  std::shared_ptr<HttpConnection> Self() {
    return std::static_pointer_cast<HttpConnection>(shared_from_this());
  }

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
    wire_->ReadSome(asio::buffer(piece_), [self = Self()](error_code error, size_t bytes) {
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
    asio::post(wire_->socket().get_executor(), [self = Self()] {
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
                     [self = Self()](error_code error, size_t bytes) {
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
  Exchange(std::shared_ptr<HttpConnection> connection, bool http_1_1, bool is_head)
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
    if (connection_->state_ == HttpConnection::State::kClosed) return callback();
    connection_->disconnect_callback_ = std::move(callback);
  }

 private:
  bool Alive() const { return !done_ && connection_->state_ != HttpConnection::State::kClosed; }

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

  std::shared_ptr<HttpConnection> connection_;
  bool http_1_1_;
  bool is_head_;
  bool done_ = false;
};

void HttpConnection::Dispatch() {
  state_ = State::kAnswering;
  CountBody(-body_bytes_);
  ClearDeadline();
  keep_alive_ = parser_->keep_alive() && !context_->stopping;
  bool http_1_1 = parser_->get().version() >= 11;
  bool is_head = parser_->get().method() == http::verb::head;
  auto exchange = std::make_shared<Exchange>(Self(), http_1_1, is_head);
  HttpRequest request = ToRequest(parser_->release());
  request.peer = wire_->peer();
  parser_.reset();
  context_->handler->Handle(std::move(request), std::move(exchange));
}

void HttpConnection::Reject(int status, std::string_view message) {
  state_ = State::kAnswering;
  CountBody(-body_bytes_);
  parser_.reset();
  ClearDeadline();
  keep_alive_ = false;
  Exchange(Self(), true, false).Send(context_->handler->ProtocolError(status, message));
}

}  // namespace

std::shared_ptr<Connection> Connection::Make(std::unique_ptr<Wire> wire,
                                             ConnectionContext* context) {
  return std::make_shared<HttpConnection>(std::move(wire), context);
}

}  // namespace fulgur::server

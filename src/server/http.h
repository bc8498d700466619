// HTTP/1.x as the rest of the server sees it: whole requests in, whole or streamed answers out.
//
// One network thread runs all connections, the handler and every callback; nothing here needs a
// lock. Other threads come in through HttpServer::Post. Handlers must not block.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/server_options.h"

namespace fulgur::server {

using HeaderList = std::vector<std::pair<std::string, std::string>>;

bool EqualsIgnoreCase(std::string_view a, std::string_view b);  // ASCII case only

// The value of the first header of that name (any case), or null.
const std::string* FindHeader(const HeaderList& headers, std::string_view name);

struct HttpRequest {
  std::string method;
  std::string path;   // percent escapes decoded, without the query
  std::string query;  // after '?', as sent
  std::string peer;   // address and port of the client, for the log
  HeaderList headers;
  std::string body;
};

struct HttpResponse {
  int status = 200;
  HeaderList headers;  // Content-Length, Connection and Date are added
  std::string body;
};

// The answer to one request. Exactly one of Send() or Start()...Finish() must be called; calls
// after the client is gone are ignored, so a handler need not ask.
class ResponseStream {
 public:
  virtual ~ResponseStream() = default;

  virtual void Send(HttpResponse response) = 0;

  // Sends the head of a streamed answer, then pieces of its body. Pieces written while the network
  // thread runs one callback leave in one packet. A client that does not read is cut off once more
  // than ListenOptions::max_unsent_bytes wait for it.
  virtual void Start(int status, HeaderList headers) = 0;
  virtual void Write(std::string_view piece) = 0;
  virtual void Finish() = 0;

  // Cuts the connection without a proper end.
  virtual void Break() = 0;

  // Called once if the client goes away (or is cut off) before the answer is complete.
  virtual void OnDisconnect(std::function<void()> callback) = 0;
};

class HttpHandler {
 public:
  virtual ~HttpHandler() = default;
  virtual void Handle(HttpRequest request, std::shared_ptr<ResponseStream> response) = 0;

  // The answer to bytes that are no acceptable request (400, 408, 413, 431); the connection closes
  // after it.
  virtual HttpResponse ProtocolError(int status, std::string_view message) = 0;
};

// What HttpServer::Create would say of certificate, key and ciphers, without listening.
absl::Status CheckTls(const ListenOptions& options);

class HttpServer {
 public:
  virtual ~HttpServer() = default;

  // Binds and listens. `handler` must outlive the server.
  static absl::StatusOr<std::unique_ptr<HttpServer>> Create(const ListenOptions& options,
                                                            HttpHandler* handler);

  // Starts the network thread: connections are accepted from now on. Once only.
  virtual void Run() = 0;

  virtual int port() const = 0;  // 0 for a unix socket

  // Runs `task` on the network thread, in the order of the calls. Callable from any thread.
  virtual void Post(std::function<void()> task) = 0;

  // Runs `task` on the network thread once `delay` has passed. Callable from any thread.
  virtual void PostAfter(absl::Duration delay, std::function<void()> task) = 0;

  // Takes no more connections and closes idle ones; others close after the answer under way.
  // Callable from any thread.
  virtual void StopAccepting() = 0;

  // Waits up to `limit` until every connection is closed; true if so.
  virtual bool WaitUntilIdle(absl::Duration limit) = 0;

  // Closes everything and joins the network thread; tasks still queued are dropped. Idempotent.
  virtual void Stop() = 0;
};

}  // namespace fulgur::server

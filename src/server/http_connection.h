// One connection of a client: requests come in, answers go out.
//
// Network thread only.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "server/http.h"
#include "server/http_wire.h"

namespace fulgur::server {

class Connection;

// What a connection needs from the server that owns it.
struct ConnectionContext {
  const ListenOptions* options;
  HttpHandler* handler;
  bool stopping = false;
  int64_t body_bytes = 0;  // of all requests that are still arriving
  std::function<void(Connection*)> on_closed;
};

class Connection : public std::enable_shared_from_this<Connection> {
 public:
  virtual ~Connection() = default;

  // `context` must outlive the connection.
  static std::shared_ptr<Connection> Make(std::unique_ptr<Wire> wire, ConnectionContext* context);

  virtual void Start() = 0;

  // Called every now and then: ends what takes too long.
  virtual void Sweep(Clock::time_point now) = 0;

  // Closes now if nothing is under way, else after the answer.
  virtual void CloseWhenIdle() = 0;

  virtual void Close() = 0;
};

}  // namespace fulgur::server

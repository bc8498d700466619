// Sockets to listen on, and the settings of TLS.
#pragma once

#include <optional>
#include <variant>

#include "absl/status/statusor.h"
#include "server/http_wire.h"
#include "server/server_options.h"

namespace fulgur::server {

using Acceptor = std::variant<asio::ip::tcp::acceptor, asio::local::stream_protocol::acceptor>;

// Binds and listens. A socket file that nobody listens on is replaced.
absl::StatusOr<Acceptor> Listen(asio::io_context& io, const ListenOptions& options);

// Absent without a certificate. Errors name the flag and the file.
absl::StatusOr<std::optional<asio::ssl::context>> MakeTlsContext(const ListenOptions& options);

}  // namespace fulgur::server

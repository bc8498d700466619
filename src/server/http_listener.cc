#include "server/http_listener.h"

#include <fmt/format.h>
#include <openssl/ssl.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <array>
#include <filesystem>
#include <string>
#include <utility>

#include "base/status_macros.h"
#include "server/http.h"

namespace fulgur::server {
namespace {

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

}  // namespace

absl::StatusOr<Acceptor> Listen(asio::io_context& io, const ListenOptions& options) {
  return options.uds.empty() ? ListenTcp(io, options) : ListenUnix(io, options.uds);
}

absl::StatusOr<std::optional<asio::ssl::context>> MakeTlsContext(const ListenOptions& options) {
  std::optional<asio::ssl::context> context;
  if (options.ssl_certfile.empty() && !options.ssl_keyfile.empty()) {
    return absl::InvalidArgumentError("--ssl-keyfile needs --ssl-certfile.");
  }
  if (options.ssl_certfile.empty()) return context;
  context.emplace(asio::ssl::context::tls_server);
  context->set_options(asio::ssl::context::no_sslv2 | asio::ssl::context::no_sslv3 |
                       asio::ssl::context::no_tlsv1 | asio::ssl::context::no_tlsv1_1);
  RETURN_IF_ERROR(SetUpTls(options, *context));
  return context;
}

absl::Status CheckTls(const ListenOptions& options) { return MakeTlsContext(options).status(); }

}  // namespace fulgur::server

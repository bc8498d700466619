#include "cli/port_check.h"

#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <string>

#include "fmt/format.h"

namespace fulgur::cli {
namespace {

// 0, or the error of binding.
int TryToBind(const addrinfo& address) {
  const int descriptor = socket(address.ai_family, address.ai_socktype, address.ai_protocol);
  if (descriptor < 0) return 0;  // an address family that this machine lacks
  const int on = 1;
  setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  const int error = bind(descriptor, address.ai_addr, address.ai_addrlen) == 0 ? 0 : errno;
  close(descriptor);
  return error;
}

}  // namespace

absl::Status CheckPort(const server::ListenOptions& listen) {
  if (!listen.uds.empty() || listen.port == 0) return absl::OkStatus();
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const char* host = listen.host.empty() ? nullptr : listen.host.c_str();
  const int lookup = getaddrinfo(host, std::to_string(listen.port).c_str(), &hints, &found);
  if (lookup != 0) {
    return absl::InvalidArgumentError(
        fmt::format("--host {}: {}", listen.host, gai_strerror(lookup)));
  }
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> addresses(found, &freeaddrinfo);
  const int error = TryToBind(*addresses);
  if (error == EADDRINUSE) {
    return absl::AlreadyExistsError(fmt::format(
        "port {} is in use by another process; choose another with --port", listen.port));
  }
  if (error == 0) return absl::OkStatus();
  return absl::InvalidArgumentError(fmt::format("--host {} --port {}: cannot listen there: {}",
                                                listen.host, listen.port, std::strerror(error)));
}

}  // namespace fulgur::cli

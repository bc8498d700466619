#include "cli/port_check.h"

#include <netdb.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string>

#include "base/status_macros.h"
#include "fmt/format.h"
#include "server/http.h"

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

// True if a process answers at the socket; a file that one left behind may be replaced.
bool IsListenedOn(const std::string& path) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof(address.sun_path) - 1);
  const int descriptor = socket(AF_UNIX, SOCK_STREAM, 0);
  if (descriptor < 0) return false;
  const bool answered =
      connect(descriptor, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0;
  close(descriptor);
  return answered;
}

absl::Status CheckUnixSocket(const std::string& path) {
  namespace fs = std::filesystem;
  constexpr size_t kMaxBytes = sizeof(sockaddr_un::sun_path) - 1;
  const auto refuse = [&](const std::string& why) {
    return absl::InvalidArgumentError(fmt::format("--uds {}: {}", path, why));
  };
  if (path.size() > kMaxBytes) {
    return refuse(
        fmt::format("the path is {} bytes long; a socket's may have {}", path.size(), kMaxBytes));
  }
  const fs::path parent = fs::path(path).parent_path();
  const std::string folder = parent.empty() ? "." : parent.string();
  std::error_code error;
  if (!fs::is_directory(folder, error)) {
    return refuse(fmt::format("the folder {} does not exist; create it first", folder));
  }
  if (access(folder.c_str(), W_OK | X_OK) != 0) {
    return refuse(fmt::format("no file may be made in {}: {}", folder, std::strerror(errno)));
  }
  if (fs::exists(path, error) && !fs::is_socket(path, error)) {
    return refuse("there is something else than a socket; remove it or choose another path");
  }
  if (!IsListenedOn(path)) return absl::OkStatus();
  return absl::AlreadyExistsError(
      fmt::format("--uds {}: another process listens there; choose another path", path));
}

}  // namespace

absl::Status CheckPort(const server::ListenOptions& listen) {
  RETURN_IF_ERROR(server::CheckTls(listen));
  if (!listen.uds.empty()) return CheckUnixSocket(listen.uds);
  if (listen.port == 0) return absl::OkStatus();
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

// Finds out whether a port can be listened on, before minutes go into loading a model.
#pragma once

#include "absl/status/status.h"
#include "server/server_options.h"

namespace fulgur::cli {

// kAlreadyExists if another process listens there, kInvalidArgument for an unknown host. Unix
// sockets and port 0 are always fine.
absl::Status CheckPort(const server::ListenOptions& listen);

}  // namespace fulgur::cli

// Finds out whether the server could listen, before minutes go into loading a model.
#pragma once

#include "absl/status/status.h"
#include "server/server_options.h"

namespace fulgur::cli {

// kAlreadyExists if another process listens there; kInvalidArgument for an unknown host, a unix
// socket that cannot be made, or unusable certificates. Port 0 is always fine.
absl::Status CheckPort(const server::ListenOptions& listen);

}  // namespace fulgur::cli

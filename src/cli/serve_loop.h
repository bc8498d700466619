// What a server process does between start and end: wait for a signal, and watch the engine.
#pragma once

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "cli/shutdown_signal.h"
#include "engine/engine.h"
#include "server/server.h"

namespace fulgur::cli {

// Returns OK after a signal, when the server has stopped: running requests got `drain` to end. Or,
// if the engine dies, why: requests have ended with an error by then, and for a moment the server
// still answered, so that clients and probes learn of it.
absl::Status ServeUntilStopped(server::Server& server, engine::Engine& engine, absl::Duration drain,
                               ShutdownSignal& signal);

}  // namespace fulgur::cli

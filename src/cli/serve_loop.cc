#include "cli/serve_loop.h"

#include "cli/words.h"
#include "fmt/format.h"
#include "spdlog/spdlog.h"

namespace fulgur::cli {
namespace {

constexpr absl::Duration kHealthInterval = absl::Milliseconds(200);
constexpr absl::Duration kDeadEngineGrace = absl::Seconds(2);

}  // namespace

absl::Status ServeUntilStopped(server::Server& server, engine::Engine& engine, absl::Duration drain,
                               ShutdownSignal& signal) {
  while (!signal.WaitFor(kHealthInterval)) {
    const absl::Status health = engine.Health();
    if (health.ok()) continue;
    signal.WaitFor(kDeadEngineGrace);
    server.Stop(absl::ZeroDuration());
    return absl::InternalError(fmt::format("the engine failed: {}", Message(health)));
  }
  spdlog::info("shutting down; {} requests are running and get {} s", server.requests_in_flight(),
               absl::ToInt64Seconds(drain));
  server.Stop(drain);
  engine.Shutdown(/*drain=*/false);
  return absl::OkStatus();
}

}  // namespace fulgur::cli

#include "cli/serve_loop.h"

#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <optional>
#include <thread>

#include "absl/time/clock.h"
#include "gtest/gtest.h"

namespace fulgur::cli {
namespace {

class FakeEngine : public engine::Engine {
 public:
  absl::StatusOr<engine::RequestId> Submit(engine::Request, engine::EventSink) override {
    return absl::UnimplementedError("");
  }
  void Abort(engine::RequestId) override {}
  absl::Status Health() const override {
    return dead ? absl::InternalError("a step failed") : absl::OkStatus();
  }
  engine::EngineStats Stats() const override { return {}; }
  int64_t MaxModelLen() const override { return 0; }
  int64_t VocabSize() const override { return 0; }
  void Shutdown(bool) override { shut_down = true; }

  std::atomic<bool> dead{false};
  bool shut_down = false;
};

class FakeServer : public server::Server {
 public:
  int port() const override { return 0; }
  int64_t requests_in_flight() const override { return 1; }
  void Stop(absl::Duration drain) override { stopped_with = drain; }

  std::optional<absl::Duration> stopped_with;
};

TEST(ServeLoopTest, DrainsAfterASignal) {
  ShutdownSignal signal;
  signal.Arm();
  FakeEngine engine;
  FakeServer server;
  std::thread sender([] {
    absl::SleepFor(absl::Milliseconds(100));
    kill(getpid(), SIGTERM);
  });
  EXPECT_TRUE(ServeUntilStopped(server, engine, absl::Seconds(7), signal).ok());
  sender.join();
  EXPECT_EQ(server.stopped_with, absl::Seconds(7));
  EXPECT_TRUE(engine.shut_down);
}

TEST(ServeLoopTest, EndsSoonAfterTheEngineDied) {
  ShutdownSignal signal;
  signal.Arm();
  FakeEngine engine;
  FakeServer server;
  std::thread killer([&] {
    absl::SleepFor(absl::Milliseconds(100));
    engine.dead = true;
  });
  const absl::Time start = absl::Now();
  const absl::Status status = ServeUntilStopped(server, engine, absl::Seconds(7), signal);
  killer.join();
  EXPECT_EQ(status, absl::InternalError("the engine failed: a step failed"));
  EXPECT_EQ(server.stopped_with, absl::ZeroDuration());
  EXPECT_LT(absl::Now() - start, absl::Seconds(5));
}

}  // namespace
}  // namespace fulgur::cli

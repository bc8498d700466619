#include "bench/trial/server_control.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <fstream>

#include "fmt/format.h"

namespace fulgur::bench {
namespace {

namespace fs = std::filesystem;

// A port that nobody listens on at the moment.
int FreePort() {
  const int socket_fd = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  bind(socket_fd, reinterpret_cast<sockaddr*>(&address), sizeof(address));
  socklen_t length = sizeof(address);
  getsockname(socket_fd, reinterpret_cast<sockaddr*>(&address), &length);
  close(socket_fd);
  return ntohs(address.sin_port);
}

class ServerControlTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::path(testing::TempDir()) / fmt::format("server_control_{}", getpid());
    fs::create_directories(folder_);
    commands_.url = fmt::format("http://127.0.0.1:{}", port_);
    commands_.health = "/";
    commands_.start_limit_s = 60;
    commands_.stop_limit_s = 20;
    serve_ = fmt::format("exec python3 -u -m http.server {} --bind 127.0.0.1", port_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  // With `commands_` as they are then.
  ServerControl& Server() {
    if (!server_) server_ = *ServerControl::Create(commands_);
    return *server_;
  }

  absl::Status Start(const Settings& settings = {}) {
    return Server().Start(settings, log(), [] { return false; });
  }

  fs::path log() const { return folder_ / "server.log"; }

  const int port_ = FreePort();
  fs::path folder_;
  ServerCommands commands_;
  std::string serve_;
  std::unique_ptr<ServerControl> server_;
};

TEST_F(ServerControlTest, StartsInTheForegroundAndStops) {
  commands_.start = "echo \"setting: $WORDS\"; " + serve_;
  const std::string json = R"({"method": "dspark", "quote": "it's $HOME"})";
  const absl::Status started = Start({{"WORDS", json}});
  ASSERT_TRUE(started.ok()) << started;
  EXPECT_TRUE(Server().Answers());
  EXPECT_NE(LogTail(log(), 20).find("setting: " + json), std::string::npos);
  const absl::Status stopped = Server().Stop();
  EXPECT_TRUE(stopped.ok()) << stopped;
  EXPECT_FALSE(Server().Answers());
}

TEST_F(ServerControlTest, StartsInTheBackgroundAndStops) {
  commands_.start = fmt::format("({}) & sleep 0.1; exit 0", serve_);
  ASSERT_TRUE(Start().ok());
  EXPECT_TRUE(Server().Stop().ok());
  EXPECT_FALSE(Server().Answers());
}

TEST_F(ServerControlTest, AServerThatLeavesTheSessionNeedsAStopCommand) {
  const fs::path pid_file = folder_ / "pid";
  commands_.start =
      fmt::format("setsid bash -c 'echo $$ > {}; {}' & exit 0", pid_file.string(), serve_);
  commands_.stop_limit_s = 1;
  ASSERT_TRUE(Start().ok());
  const absl::Status stopped = Server().Stop();
  EXPECT_FALSE(stopped.ok());
  EXPECT_NE(stopped.message().find("needs a \"stop\" command"), std::string::npos) << stopped;

  commands_.stop = fmt::format("kill $(cat {})", pid_file.string());
  commands_.stop_limit_s = 20;
  server_ = *ServerControl::Create(commands_);
  EXPECT_TRUE(server_->Stop().ok());
  EXPECT_FALSE(server_->Answers());
}

TEST_F(ServerControlTest, AStubbornServerIsKilled) {
  commands_.start = "trap '' TERM; " + serve_.substr(5);
  commands_.stop_limit_s = 1;
  ASSERT_TRUE(Start().ok());
  EXPECT_TRUE(Server().Stop().ok());
  EXPECT_FALSE(Server().Answers());
}

TEST_F(ServerControlTest, AFailedStartShowsTheEndOfTheLog) {
  commands_.start =
      "for i in $(seq 100); do echo line $i; done; echo 'error: no such flag' >&2; exit 3";
  const absl::Status started = Start();
  EXPECT_FALSE(started.ok());
  EXPECT_NE(started.message().find("the start command ended with 3"), std::string::npos);
  EXPECT_NE(started.message().find("line 90"), std::string::npos) << started;
  EXPECT_EQ(started.message().find("line 50"), std::string::npos) << started;
  EXPECT_NE(started.message().find("error: no such flag"), std::string::npos);
  EXPECT_TRUE(Server().Stop().ok());
}

TEST_F(ServerControlTest, AServerThatIsNeverReadyRunsIntoTheLimit) {
  commands_.start = "echo loading; exec sleep 1000";
  commands_.start_limit_s = 1;
  const absl::Status started = Start();
  EXPECT_TRUE(absl::IsDeadlineExceeded(started)) << started;
  EXPECT_NE(started.message().find("not ready within 1 s"), std::string::npos);
  EXPECT_NE(started.message().find("loading"), std::string::npos);
  EXPECT_TRUE(Server().Stop().ok());
}

TEST_F(ServerControlTest, OnlyAStatusOf200IsReady) {
  commands_.start = serve_;
  commands_.health = "/missing";
  commands_.start_limit_s = 2;
  const absl::Status started = Start();
  EXPECT_NE(started.message().find("status 404"), std::string::npos) << started;
  EXPECT_TRUE(Server().Stop().ok());
}

TEST_F(ServerControlTest, AnInterruptionEndsTheWait) {
  commands_.start = "exec sleep 1000";
  int asked = 0;
  const absl::Status started = Server().Start({}, log(), [&asked] { return ++asked > 2; });
  EXPECT_TRUE(absl::IsCancelled(started)) << started;
  EXPECT_TRUE(Server().Stop().ok());
}

}  // namespace
}  // namespace fulgur::bench

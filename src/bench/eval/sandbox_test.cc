#include "bench/eval/sandbox.h"

#include "gtest/gtest.h"

namespace fulgur::bench {
namespace {

class SandboxTest : public testing::Test {
 protected:
  void SetUp() override {
    auto sandbox = Sandbox::Create({.wall = std::chrono::milliseconds(3000)});
    if (!sandbox.ok()) GTEST_SKIP() << sandbox.status().message();
    sandbox_ = std::make_unique<Sandbox>(*std::move(sandbox));
  }
  bool Passes(const std::string& program) { return *sandbox_->RunProgram(program); }

  std::unique_ptr<Sandbox> sandbox_;
};

TEST_F(SandboxTest, RunsProgramsAndSeesFailures) {
  EXPECT_TRUE(Passes("assert 1 + 1 == 2\n"));
  EXPECT_FALSE(Passes("assert 1 + 1 == 3\n"));
  EXPECT_FALSE(Passes("this is no Python\n"));
  EXPECT_FALSE(Passes("raise SystemExit(3)\n"));
}

TEST_F(SandboxTest, EndsWhatRunsTooLong) {
  EXPECT_FALSE(Passes("while True: pass\n"));
  EXPECT_FALSE(Passes("import time\ntime.sleep(60)\n"));
}

TEST_F(SandboxTest, HasNoNetworkAndNoMemoryWithoutEnd) {
  EXPECT_TRUE(
      Passes("import socket\n"
             "s = socket.socket()\n"
             "s.settimeout(1)\n"
             "try:\n"
             "  s.connect(('1.1.1.1', 80))\n"
             "except OSError:\n"
             "  raise SystemExit(0)\n"
             "raise SystemExit(1)\n"));
  EXPECT_FALSE(Passes("x = bytearray(2 << 30)\n"));
}

}  // namespace
}  // namespace fulgur::bench

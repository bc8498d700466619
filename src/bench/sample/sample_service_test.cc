// The sampler's HTTP service over real sockets.
#include "bench/sample/sample_service.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "absl/time/clock.h"
#include "nlohmann/json.hpp"
#include "server/testing/http_client.h"

namespace fulgur::bench {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;
using server::testing::HttpClient;

class SampleServiceTest : public testing::Test {
 protected:
  SampleServiceTest()
      : folder_(fs::path(testing::TempDir()) / ("service_" + std::to_string(getpid()))) {
    fs::remove_all(folder_);
  }
  ~SampleServiceTest() override { fs::remove_all(folder_); }

  std::unique_ptr<SampleService> Start(const std::string& api_key = "") const {
    SampleServiceOptions options;
    options.host = "127.0.0.1";
    options.api_key = api_key;
    options.sampler.folder = folder_;
    options.sampler.devices = DeviceBackend::kNone;
    auto service = SampleService::Start(std::move(options));
    EXPECT_TRUE(service.ok()) << service.status();
    return *std::move(service);
  }

  const fs::path folder_;
};

TEST_F(SampleServiceTest, StartsStopsAndSendsTheLog) {
  const auto service = Start();
  HttpClient client(service->port());
  EXPECT_EQ(client.Get("/health").status, 200);
  auto answer = client.Post("/start", R"({"tag": "remote", "interval_ms": 20})");
  ASSERT_EQ(answer.status, 200) << answer.body;
  EXPECT_EQ(Json::parse(answer.body)["running"], true);
  EXPECT_EQ(client.Post("/start", R"({"tag": "other"})").status, 409);
  absl::SleepFor(absl::Milliseconds(200));
  answer = client.Post("/stop", "");
  ASSERT_EQ(answer.status, 200) << answer.body;
  const Json stopped = Json::parse(answer.body);
  EXPECT_EQ(stopped["running"], false);
  EXPECT_GE(stopped["ticks"], 5);
  answer = client.Get("/log?tag=remote");
  ASSERT_EQ(answer.status, 200);
  EXPECT_TRUE(answer.body.starts_with(R"({"format":"fulgur-util/1")"));
  EXPECT_NE(answer.body.find(R"("end")"), std::string::npos);
  EXPECT_EQ(Json::parse(client.Get("/status").body)["ticks"], stopped["ticks"]);
}

TEST_F(SampleServiceTest, TellsTheTime) {
  const auto service = Start();
  HttpClient client(service->port());
  const int64_t before = absl::GetCurrentTimeNanos();
  const Json answer = Json::parse(client.Get("/time").body);
  const int64_t after = absl::GetCurrentTimeNanos();
  EXPECT_GE(answer["wall_ns"], before);
  EXPECT_LE(answer["wall_ns"], after);
  EXPECT_GT(answer["monotonic_ns"], 0);
}

TEST_F(SampleServiceTest, SaysWhatIsWrong) {
  const auto service = Start();
  HttpClient client(service->port());
  const auto start = [&](const std::string& body) { return client.Post("/start", body); };
  EXPECT_EQ(start("nonsense").status, 400);
  EXPECT_EQ(start("{}").status, 400);
  EXPECT_NE(start(R"({"tag": 7})").body.find("'tag' must be a text"), std::string::npos);
  EXPECT_NE(start(R"({"tag": "x", "intervall": 5})").body.find("unknown field 'intervall'"),
            std::string::npos);
  EXPECT_EQ(start(R"({"tag": "../x"})").status, 400);
  EXPECT_EQ(start(R"({"tag": "x", "devices": "tpu"})").status, 400);
  EXPECT_EQ(start(R"({"tag": "x", "devices": "none", "format": "seed"})").status, 400);
  EXPECT_EQ(client.Post("/stop", "").status, 404);
  EXPECT_EQ(client.Get("/log?tag=nothing").status, 404);
  EXPECT_EQ(client.Get("/log?tag=../../etc/passwd").status, 400);
  EXPECT_EQ(client.Get("/log").status, 400);
  EXPECT_EQ(client.Get("/start").status, 405);
  EXPECT_EQ(client.Get("/elsewhere").status, 404);
}

TEST_F(SampleServiceTest, AKeyGuardsAllButHealth) {
  const auto service = Start("secret");
  HttpClient client(service->port());
  EXPECT_EQ(client.Get("/health").status, 200);
  EXPECT_EQ(client.Get("/time").status, 401);
  EXPECT_EQ(client.Post("/start", R"({"tag": "x"})").status, 401);
  EXPECT_EQ(client.Get("/time", {{"Authorization", "Bearer secret"}}).status, 200);
}

TEST_F(SampleServiceTest, StoppingTheServiceEndsARunningSampler) {
  auto service = Start();
  ASSERT_EQ(HttpClient(service->port()).Post("/start", R"({"tag": "left"})").status, 200);
  service->Stop();
  std::ifstream log(folder_ / "util-left.jsonl");
  const std::string text((std::istreambuf_iterator<char>(log)), std::istreambuf_iterator<char>());
  EXPECT_NE(text.find(R"("end")"), std::string::npos);
}

}  // namespace
}  // namespace fulgur::bench

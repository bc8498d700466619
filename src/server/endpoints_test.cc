// Models, tokenize, metrics, keys, CORS and what else needs no generation.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "server/testing/server_fixture.h"

namespace fulgur::server {
namespace {

using ::testing::HasSubstr;
using testing::Json;
using testing::TestServer;
using testing::UserMessage;

TEST(EndpointsTest, Models) {
  TestServer server;
  Json list = Json::parse(server.Get("/v1/models").body);
  EXPECT_EQ(list["object"], "list");
  ASSERT_EQ(list["data"].size(), 2);
  const Json& card = list["data"][0];
  EXPECT_EQ(card["id"], "dsv4");
  EXPECT_EQ(card["root"], "/models/tiny");
  EXPECT_EQ(card["owned_by"], "vllm");
  EXPECT_EQ(card["max_model_len"], 2000);
  EXPECT_EQ(card["permission"][0]["object"], "model_permission");
  EXPECT_EQ(Json::parse(server.Get("/v1/models/alias").body)["id"], "alias");
}

TEST(EndpointsTest, SmallOnes) {
  TestServer server;
  auto health = server.Get("/health");
  EXPECT_EQ(health.status, 200);
  EXPECT_EQ(health.body, "");
  EXPECT_EQ(server.Get("/ping").status, 200);
  EXPECT_EQ(server.Connect().Post("/ping", "").status, 200);
  EXPECT_EQ(server.Get("/version").body, R"({"version":"0.0-test"})");
  Json load = Json::parse(server.Get("/load").body);
  EXPECT_EQ(load["server_load"], 0);
  EXPECT_THAT(load["message"].get<std::string>(), HasSubstr("--enable-server-load-tracking"));
  auto client = server.Connect();
  client.Send(testing::HttpClient::RequestText("HEAD", "/v1/models"));
  EXPECT_EQ(client.Read(/*is_head=*/true).status, 200);
  EXPECT_EQ(client.Get("/health").status, 200) << "no body may follow a HEAD";
}

TEST(EndpointsTest, Load) {
  ServerOptions options = testing::TestOptions();
  options.enable_server_load_tracking = true;
  TestServer server(options);
  server.engine().SetPace(std::chrono::milliseconds(20));
  server.Say("a rather long answer");
  auto client = server.Connect();
  Json body = {{"prompt", "Hi"}};
  client.Send(testing::HttpClient::RequestText("POST", "/v1/completions", body.dump()));
  ASSERT_TRUE(testing::WaitFor([&] { return server.engine().num_active() == 1; }));
  EXPECT_EQ(server.Get("/load").body, R"({"server_load":1})");
}

TEST(EndpointsTest, TokenizeAndBack) {
  TestServer server;
  const std::string text = "Hello \xE4\xBD\xA0\xE5\xA5\xBD";
  Json tokens = Json::parse(server.Post("/tokenize", {{"prompt", text}}).body);
  EXPECT_EQ(tokens["tokens"], Json(testing::TinyTokenizer().Encode(text)));
  EXPECT_EQ(tokens["count"], tokens["tokens"].size());
  EXPECT_EQ(tokens["max_model_len"], 2000);
  EXPECT_TRUE(tokens["token_strs"].is_null());
  Json back = Json::parse(server.Post("/detokenize", {{"tokens", tokens["tokens"]}}).body);
  EXPECT_EQ(back["prompt"], text);
  tokens =
      Json::parse(server.Post("/tokenize", {{"prompt", text}, {"return_token_strs", true}}).body);
  EXPECT_EQ(tokens["token_strs"].size(), tokens["tokens"].size());
  EXPECT_EQ(Json::parse(server.Post("/tokenize", {{"prompt", ""}}).body)["count"], 0);
  EXPECT_EQ(server.Post("/detokenize", {{"tokens", {594}}}).status, 400);
  EXPECT_EQ(server.Post("/detokenize", {{"tokens", {-1}}}).status, 400);
  EXPECT_EQ(server.Post("/detokenize", {{"tokens", "x"}}).status, 400);
  EXPECT_EQ(server.Post("/detokenize", Json::object()).status, 400);
  EXPECT_EQ(server.Post("/tokenize", Json::object()).status, 400);
  EXPECT_EQ(server.Post("/tokenize", {{"prompt", "x"}, {"model", "nope"}}).status, 404);
}

TEST(EndpointsTest, TokenizeCountsWhatAChatWouldUse) {
  TestServer server;
  server.Say("</think>x");
  Json body = {{"messages", UserMessage("Hi there")}, {"reasoning_effort", "max"}};
  Json count = Json::parse(server.Post("/tokenize", body).body);
  Json answer = Json::parse(server.Chat(body).body);
  EXPECT_EQ(count["count"], answer["usage"]["prompt_tokens"]);
  EXPECT_EQ(count["tokens"], Json(server.engine().requests().back().prompt));
}

TEST(EndpointsTest, Keys) {
  ServerOptions options = testing::TestOptions();
  options.api_keys = {"first", "second"};
  TestServer server(options);
  for (const char* header : {"", "first", "Bearer", "Bearer ", "Bearer wrong", "Bearer firstx",
                             "Basic first", "Bearer  first"}) {
    auto response = server.Get("/v1/models", {{"Authorization", header}});
    EXPECT_EQ(response.status, 401) << header;
    EXPECT_EQ(response.body, R"({"error":"Unauthorized"})");
  }
  EXPECT_EQ(server.Get("/v1/models").status, 401);
  EXPECT_EQ(server.Get("/v1/nope").status, 401);
  for (const char* path : {"/models", "/chat/completions", "/invocations"}) {
    EXPECT_EQ(server.Post(path, Json::object()).status, 401) << path;
  }
  for (const char* header : {"Bearer first", "bearer second", "BEARER second"}) {
    EXPECT_EQ(server.Get("/v1/models", {{"Authorization", header}}).status, 200) << header;
  }
  for (const char* path : {"/health", "/metrics", "/version"}) {
    EXPECT_EQ(server.Get(path).status, 200) << path;
  }
}

testing::ClientResponse Preflight(const TestServer& server, const HeaderList& headers) {
  auto client = server.Connect();
  client.Send(testing::HttpClient::RequestText("OPTIONS", "/v1/chat/completions", {}, headers));
  return client.Read();
}

TEST(EndpointsTest, CrossOriginByDefault) {
  ServerOptions options = testing::TestOptions();
  options.api_keys = {"key"};
  TestServer server(options);
  auto preflight =
      Preflight(server, {{"Origin", "http://app.example"},
                         {"Access-Control-Request-Method", "POST"},
                         {"Access-Control-Request-Headers", "authorization,content-type"}});
  EXPECT_EQ(preflight.status, 200);
  EXPECT_EQ(preflight.Header("Access-Control-Allow-Origin"), "*");
  EXPECT_THAT(preflight.Header("Access-Control-Allow-Methods"), HasSubstr("POST"));
  EXPECT_EQ(preflight.Header("Access-Control-Allow-Headers"), "authorization,content-type");
  auto answer = server.Get("/v1/models", {{"Origin", "http://app.example"}});
  EXPECT_EQ(answer.status, 401);
  EXPECT_EQ(answer.Header("Access-Control-Allow-Origin"), "*") << "a page must see the error";
  EXPECT_EQ(server.Get("/health").Header("Access-Control-Allow-Origin"), "");
}

TEST(EndpointsTest, CrossOriginRestricted) {
  ServerOptions options = testing::TestOptions();
  options.cors.allowed_origins = {"http://good.example"};
  options.cors.allowed_methods = {"GET"};
  options.cors.allowed_headers = {"authorization"};
  options.cors.allow_credentials = true;
  TestServer server(options);
  auto good = Preflight(server, {{"Origin", "http://good.example"},
                                 {"Access-Control-Request-Method", "GET"},
                                 {"Access-Control-Request-Headers", "Authorization"}});
  EXPECT_EQ(good.status, 200);
  EXPECT_EQ(good.Header("Access-Control-Allow-Origin"), "http://good.example");
  EXPECT_EQ(good.Header("Access-Control-Allow-Credentials"), "true");
  EXPECT_EQ(good.Header("Vary"), "Origin");
  auto bad = Preflight(server, {{"Origin", "http://bad.example"},
                                {"Access-Control-Request-Method", "POST"},
                                {"Access-Control-Request-Headers", "X-Other"}});
  EXPECT_EQ(bad.status, 400);
  EXPECT_EQ(bad.body, "Disallowed CORS origin, method, headers");
  EXPECT_EQ(bad.Header("Access-Control-Allow-Origin"), "");
  auto plain = server.Get("/health", {{"Origin", "http://bad.example"}});
  EXPECT_EQ(plain.status, 200);
  EXPECT_EQ(plain.Header("Access-Control-Allow-Origin"), "");
}

TEST(EndpointsTest, RequestIdHeaders) {
  ServerOptions options = testing::TestOptions();
  options.enable_request_id_headers = true;
  TestServer server(options);
  EXPECT_EQ(server.Get("/health", {{"X-Request-Id", "abc"}}).Header("X-Request-Id"), "abc");
  EXPECT_EQ(server.Get("/health").Header("X-Request-Id").size(), 32);
  EXPECT_EQ(TestServer().Get("/health").Header("X-Request-Id"), "");
}

TEST(EndpointsTest, RootPath) {
  ServerOptions options = testing::TestOptions();
  options.root_path = "/llm";
  options.api_keys = {"key"};
  TestServer server(options);
  EXPECT_EQ(server.Get("/llm/health").status, 200);
  EXPECT_EQ(server.Get("/health").status, 200);
  EXPECT_EQ(server.Get("/llmx/health").status, 404);
  EXPECT_EQ(server.Get("/llm/v1/models").status, 401);
}

TEST(EndpointsTest, EverySeriesExistsFromTheStart) {
  TestServer server;
  auto response = server.Get("/metrics");
  EXPECT_EQ(response.Header("Content-Type"), "text/plain; version=0.0.4; charset=utf-8");
  const std::string labels = R"({engine="0",model_name="dsv4")";
  for (const char* name : {"num_requests_running",
                           "num_requests_waiting",
                           "kv_cache_usage_perc",
                           "gpu_cache_usage_perc",
                           "prompt_tokens_total",
                           "generation_tokens_total",
                           "prompt_tokens_cached_total",
                           "prefix_cache_queries_total",
                           "prefix_cache_hits_total",
                           "external_prefix_cache_queries_total",
                           "mm_cache_hits_total",
                           "num_preemptions_total",
                           "prompt_tokens_created",
                           "time_to_first_token_seconds_count",
                           "inter_token_latency_seconds_sum",
                           "time_per_output_token_seconds_count",
                           "request_time_per_output_token_seconds_count",
                           "e2e_request_latency_seconds_count",
                           "request_queue_time_seconds_count",
                           "request_inference_time_seconds_count",
                           "request_prefill_time_seconds_count",
                           "request_decode_time_seconds_count",
                           "request_prompt_tokens_count",
                           "request_generation_tokens_count",
                           "request_max_num_generation_tokens_count",
                           "request_params_max_tokens_count",
                           "request_prefill_kv_computed_tokens_count",
                           "request_params_n_count",
                           "iteration_tokens_total_count"}) {
    EXPECT_THAT(response.body, HasSubstr("\nvllm:" + std::string(name) + labels)) << name;
  }
  for (const char* reason : {"stop", "length", "abort", "error", "repetition"}) {
    EXPECT_THAT(response.body, HasSubstr("vllm:request_success_total" + labels +
                                         ",finished_reason=\"" + reason + "\"} 0.0"));
  }
  EXPECT_THAT(response.body, HasSubstr("process_resident_memory_bytes "));
  EXPECT_THAT(response.body, HasSubstr("le=\"+Inf\""));
}

// A load balancer sends nothing to a server that still claims to be busy.
TEST(EndpointsTest, GaugesFallToZeroWhenEveryClientLeaves) {
  TestServer server;
  server.engine().SetPace(std::chrono::milliseconds(20));
  server.Say("a rather long answer that nobody waits for");
  {
    std::vector<testing::HttpClient> clients;
    for (int i = 0; i < 5; ++i) {
      clients.push_back(server.Connect());
      const Json body = {{"prompt", "Hi"}, {"max_tokens", 500}, {"stream", i % 2 == 0}};
      clients.back().Send(testing::HttpClient::RequestText("POST", "/v1/completions", body.dump()));
    }
    ASSERT_TRUE(testing::WaitFor([&] { return server.engine().num_active() == 5; }));
  }
  ASSERT_TRUE(testing::WaitFor([&] { return server.engine().num_active() == 0; }));
  const std::string metrics = server.Get("/metrics").body;
  for (const char* gauge :
       {"num_requests_running", "num_requests_waiting", "kv_cache_usage_perc"}) {
    EXPECT_THAT(metrics,
                HasSubstr("vllm:" + std::string(gauge) + R"({engine="0",model_name="dsv4"} 0.0)"));
  }
}

TEST(EndpointsTest, MetricsCount) {
  TestServer server;
  server.Say("</think>abc");
  Json body = {{"messages", UserMessage("Hi")}};
  Json answer = Json::parse(server.Chat(body).body);
  body["max_tokens"] = 2;
  server.Chat(body);
  std::string text = server.Get("/metrics").body;
  const std::string labels = R"({engine="0",model_name="dsv4")";
  EXPECT_THAT(text,
              HasSubstr("vllm:request_success_total" + labels + ",finished_reason=\"stop\"} 1.0"));
  EXPECT_THAT(
      text, HasSubstr("vllm:request_success_total" + labels + ",finished_reason=\"length\"} 1.0"));
  EXPECT_THAT(text, HasSubstr("vllm:time_to_first_token_seconds_count" + labels + "} 2.0"));
  EXPECT_THAT(text, HasSubstr("vllm:e2e_request_latency_seconds_count" + labels + "} 2.0"));
  EXPECT_THAT(text, HasSubstr("http_requests_total{handler=\"/v1/chat/completions\",method="
                              "\"POST\",status=\"2xx\"} 2.0"));
  EXPECT_THAT(text, HasSubstr("vllm:num_requests_running" + labels + "} 0.0"));
  server.Get("/nope");
  auto client = server.Connect();
  client.Send(testing::HttpClient::RequestText("BREW", "/nope"));
  client.Read();
  text = server.Get("/metrics").body;
  EXPECT_THAT(text, HasSubstr("handler=\"none\",method=\"OTHER\",status=\"4xx\"} 1.0"));
  EXPECT_THAT(text, ::testing::Not(HasSubstr("handler=\"/metrics\"")));
}

TEST(EndpointsTest, HealthNoticesAnEngineThatHangs) {
  ServerOptions options = testing::TestOptions();
  options.hang_timeout = absl::Milliseconds(1500);
  TestServer server(options);
  server.engine().SetNumWaiting(1);  // work, but no steps
  EXPECT_EQ(server.Get("/health").status, 200);
  EXPECT_TRUE(testing::WaitFor([&] { return server.Get("/health").status == 503; }, 8000));
  server.engine().SetNumWaiting(0);
  EXPECT_TRUE(testing::WaitFor([&] { return server.Get("/health").status == 200; }, 8000));
}

}  // namespace
}  // namespace fulgur::server

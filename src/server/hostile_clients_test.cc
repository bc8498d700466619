// Clients that vanish, dawdle, flood or stop reading: the server goes on serving others, and
// nothing stays behind.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <fstream>
#include <random>

#include "server/testing/server_fixture.h"

namespace fulgur::server {
namespace {

using ::testing::HasSubstr;
using testing::HttpClient;
using testing::Json;
using testing::TestServer;
using testing::UserMessage;
using testing::WaitFor;

const char kChat[] = "/v1/chat/completions";

std::string ChatText(bool stream, int64_t max_tokens = 100000) {
  Json body = {{"messages", UserMessage("Hi")},
               {"stream", stream},
               {"ignore_eos", true},
               {"max_tokens", max_tokens}};
  return HttpClient::RequestText("POST", kChat, body.dump());
}

// An engine that never stops talking by itself.
void SayForever(TestServer& server) {
  server.SayBy([](const engine::Request&) {
    testing::Script script;
    script.tokens.assign(200000, testing::TinyTokenizer().Encode("~").front());
    return script;
  });
}

double Milliseconds(const std::function<void()>& action) {
  auto start = std::chrono::steady_clock::now();
  action();
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start)
      .count();
}

class HostileClientsTest : public ::testing::Test {
 protected:
  HostileClientsTest() : server_(testing::TestOptions(), 1000000) {
    SayForever(server_);
    server_.engine().SetPace(std::chrono::milliseconds(5));
  }
  TestServer server_;
};

TEST_F(HostileClientsTest, ADisconnectFreesTheRequestAtOnce) {
  for (bool stream : {false, true}) {
    for (bool reset : {false, true}) {
      HttpClient client = server_.Connect();
      client.Send(ChatText(stream));
      ASSERT_TRUE(WaitFor([&] { return server_.engine().num_active() == 1; }));
      if (stream) client.Fill();
      reset ? client.Reset() : client.Close();
      EXPECT_TRUE(WaitFor([&] { return server_.engine().num_active() == 0; }, 1000));
    }
  }
  EXPECT_TRUE(server_.IsFree());
  EXPECT_EQ(server_.engine().num_aborts(), 4);
  EXPECT_THAT(server_.Get("/metrics").body, HasSubstr("finished_reason=\"abort\"} 4.0"));
}

TEST_F(HostileClientsTest, DisconnectsAtEveryByteOfARequest) {
  const std::string request = ChatText(true);
  for (size_t sent = 0; sent <= request.size(); sent += 3) {
    HttpClient client = server_.Connect();
    client.Send(std::string_view(request).substr(0, sent));
    if (sent % 2 == 0) client.Reset();
  }
  HttpClient last = server_.Connect();
  last.Send(request);
  last.Close();
  EXPECT_TRUE(server_.IsFree());
}

TEST_F(HostileClientsTest, DisconnectsWhileTheAnswerRuns) {
  std::mt19937 random(20240611);
  std::vector<std::thread> threads;
  std::array<std::mt19937::result_type, 8> seeds;
  for (auto& seed : seeds) seed = random();
  for (auto seed : seeds) {
    threads.emplace_back([this, seed] {
      std::mt19937 own(seed);
      for (int i = 0; i < 15; ++i) {
        HttpClient client = server_.Connect();
        client.Send(ChatText(own() % 2 == 0));
        std::this_thread::sleep_for(std::chrono::milliseconds(own() % 20));
        own() % 2 == 0 ? client.Reset() : client.Close();
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_TRUE(server_.IsFree());
  EXPECT_EQ(server_.Get("/health").status, 200);
}

TEST_F(HostileClientsTest, APipelinedRequestDoesNotHideADisconnect) {
  HttpClient client = server_.Connect();
  client.Send(ChatText(true) + HttpClient::RequestText("GET", "/health"));
  ASSERT_TRUE(WaitFor([&] { return server_.engine().num_active() == 1; }));
  client.Close();
  EXPECT_TRUE(WaitFor([&] { return server_.engine().num_active() == 0; }, 1000));
}

TEST_F(HostileClientsTest, PipelinedRequestsAreAnsweredInOrder) {
  HttpClient client = server_.Connect();
  client.Send(ChatText(false, 3) + HttpClient::RequestText("GET", "/version") + ChatText(true, 3) +
              HttpClient::RequestText("GET", "/nope") + HttpClient::RequestText("GET", "/health"));
  EXPECT_THAT(client.Read().body, HasSubstr("chat.completion"));
  EXPECT_THAT(client.Read().body, HasSubstr("version"));
  EXPECT_THAT(client.Read().body, HasSubstr("[DONE]"));
  EXPECT_EQ(client.Read().status, 404);
  EXPECT_EQ(client.Read().status, 200);
}

TEST_F(HostileClientsTest, ManyPipelinedRequestsDoNotPileUp) {
  HttpClient client = server_.Connect();
  client.Send(ChatText(false, 20));
  std::string flood;
  for (int i = 0; i < 1000; ++i) flood += HttpClient::RequestText("GET", "/version");
  std::thread sender([&] { client.Send(flood); });
  EXPECT_EQ(client.Read().status, 200);
  for (int i = 0; i < 1000; ++i) ASSERT_EQ(client.Read().status, 200) << i;
  sender.join();
}

TEST(SlowReaderTest, IsCutOffAndDisturbsNobody) {
  ServerOptions options = testing::TestOptions();
  options.listen.max_unsent_bytes = 256 << 10;
  TestServer server(options, 1000000);
  SayForever(server);
  server.engine().SetPace(std::chrono::milliseconds(0), 50);
  HttpClient slow = server.Connect(4096);
  Json body = {{"messages", UserMessage("Hi")},
               {"stream", true},
               {"logprobs", true},
               {"top_logprobs", 20},
               {"max_tokens", 150000}};
  slow.Send(HttpClient::RequestText("POST", kChat, body.dump()));
  // It may be cut off before anybody looks.
  ASSERT_TRUE(WaitFor([&] { return server.engine().requests().size() == 1; }));
  for (int i = 0; i < 20; ++i) {
    double ms = Milliseconds([&] { EXPECT_EQ(server.Get("/health").status, 200); });
    EXPECT_LT(ms, 1000);
  }
  EXPECT_TRUE(WaitFor([&] { return server.engine().num_active() == 0; }, 20000))
      << "the slow reader was not cut off";
  EXPECT_TRUE(server.IsFree());
}

TEST(SlowReaderTest, WhoReadsNothingIsCutOffAfterAWhile) {
  ServerOptions options = testing::TestOptions();
  options.listen.write_timeout = absl::Milliseconds(500);
  TestServer server(options, 4000000);
  server.Say("x");
  HttpClient client = server.Connect(4096);
  // The answer of a few megabytes fits no socket buffer.
  Json body = {{"prompt", std::vector<int>(300000, 5)},
               {"return_token_ids", true},
               {"return_tokens_as_token_ids", true},
               {"prompt_logprobs", 1}};
  client.Send(HttpClient::RequestText("POST", "/v1/completions", body.dump()));
  EXPECT_TRUE(WaitFor([&] { return server.engine().requests().size() == 1; }, 30000));
  EXPECT_TRUE(WaitFor([&] { return server.server().requests_in_flight() == 0; }, 60000));
  std::this_thread::sleep_for(std::chrono::seconds(2));
  while (client.Fill()) {
  }
  EXPECT_LT(client.buffer().size(), 10000000);
  EXPECT_EQ(server.Get("/health").status, 200);
}

TEST(SlowSenderTest, GetsATimeOut) {
  ServerOptions options = testing::TestOptions();
  options.listen.header_timeout = absl::Milliseconds(400);
  options.listen.body_timeout = absl::Milliseconds(400);
  options.listen.keep_alive_timeout = absl::Milliseconds(800);
  TestServer server(options);
  server.Say("</think>x");

  HttpClient header = server.Connect();
  header.Send("GET /health HT");
  EXPECT_EQ(header.Read().status, 408);
  EXPECT_TRUE(header.IsClosed());

  HttpClient body = server.Connect();
  body.Send(
      "POST /tokenize HTTP/1.1\r\nContent-Type: application/json\r\nContent-Length: 50\r\n\r\n{");
  auto response = body.Read();
  EXPECT_EQ(response.status, 408);
  EXPECT_EQ(Json::parse(response.body)["error"]["code"], 408);
  EXPECT_TRUE(body.IsClosed());

  HttpClient idle = server.Connect();
  EXPECT_EQ(idle.Get("/health").status, 200);
  EXPECT_TRUE(idle.IsClosed());

  // Slow but steady is fine: the time limit of a body is for its pauses.
  HttpClient steady = server.Connect();
  const std::string request =
      HttpClient::RequestText("POST", kChat, Json{{"messages", UserMessage("Hi")}}.dump());
  size_t head = request.find("\r\n\r\n") + 4;
  steady.Send(request.substr(0, head));
  for (size_t at = head; at < request.size(); at += 8) {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    steady.Send(request.substr(at, 8));
  }
  EXPECT_EQ(steady.Read().status, 200);
}

TEST_F(HostileClientsTest, AThousandIdleConnectionsDisturbNobody) {
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = std::min<rlim_t>(limit.rlim_max, 8192);
  setrlimit(RLIMIT_NOFILE, &limit);
  std::vector<HttpClient> idle;
  for (int i = 0; i < 1000; ++i) {
    idle.push_back(server_.Connect());
    ASSERT_TRUE(idle.back().connected()) << i;
    if (i % 3 == 0) idle.back().Send("GET /hea");  // and some in the middle of a request
  }
  for (int i = 0; i < 1000; i += 50) ASSERT_EQ(server_.Get("/health").status, 200);
  double ms = Milliseconds([&] {
    HttpClient client = server_.Connect();
    client.Send(ChatText(true, 20));
    EXPECT_THAT(client.Read().body, HasSubstr("[DONE]"));
  });
  EXPECT_LT(ms, 3000);
  EXPECT_EQ(idle[1].Get("/health").status, 200);
  idle[0].Send("lth HTTP/1.1\r\n\r\n");
  EXPECT_EQ(idle[0].Read().status, 200);
}

TEST(LargeBodyTest, LimitsOfTheTransport) {
  ServerOptions options = testing::TestOptions();
  options.listen.max_body_bytes = 1000;
  options.listen.max_header_bytes = 4000;
  TestServer server(options);
  std::string large(2000, 'x');
  auto response = server.Connect().Post("/tokenize", large);
  EXPECT_EQ(response.status, 413);
  EXPECT_EQ(Json::parse(response.body)["error"]["code"], 413);

  HttpClient chunked = server.Connect();
  chunked.Send("POST /tokenize HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n");
  for (int i = 0; i < 30; ++i) chunked.Send("32\r\n" + std::string(50, 'x') + "\r\n");
  EXPECT_EQ(chunked.Read().status, 413);

  response = server.Get("/health", {{"X-Large", std::string(5000, 'x')}});
  EXPECT_EQ(response.status, 431);
  HeaderList many;
  for (int i = 0; i < 300; ++i) many.emplace_back("A" + std::to_string(i), "b");
  options.listen.max_header_bytes = 1 << 20;
  TestServer other(options);
  EXPECT_EQ(other.Get("/health", many).status, 431);
  EXPECT_EQ(other.Get("/health").status, 200);
}

TEST(BrokenHttpTest, IsAnsweredAndTheConnectionEnds) {
  TestServer server;
  for (const char* garbage :
       {"\r\n\r\n\r\n", "nonsense\r\n\r\n", "GET /health\r\n\r\n", "GET  HTTP/1.1\r\n\r\n",
        "GET /health HTTP/9.9\r\n\r\n", "GET /health HTTP/1.1\r\nNo colon\r\n\r\n",
        "POST /tokenize HTTP/1.1\r\nContent-Length: x\r\n\r\n",
        "POST /tokenize HTTP/1.1\r\nContent-Length: -5\r\n\r\n",
        "POST /tokenize HTTP/1.1\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nabcdef",
        "POST /tokenize HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n"}) {
    HttpClient client = server.Connect();
    client.Send(garbage);
    auto response = client.Read();
    EXPECT_EQ(response.status, 400) << garbage;
    if (response.status == 400) {
      EXPECT_EQ(Json::parse(response.body)["error"]["type"], "Bad Request");
      EXPECT_EQ(response.Header("Connection"), "close");
    }
    EXPECT_TRUE(client.IsClosed()) << garbage;
  }
}

TEST(BrokenHttpTest, OldClients) {
  TestServer server;
  server.Say("</think>x");
  HttpClient old = server.Connect();
  old.Send("GET /version HTTP/1.0\r\n\r\n");
  EXPECT_THAT(old.Read().body, HasSubstr("version"));
  EXPECT_TRUE(old.IsClosed());
  HttpClient stream = server.Connect();
  std::string body = Json{{"messages", UserMessage("Hi")}, {"stream", true}}.dump();
  stream.Send("POST " + std::string(kChat) +
              " HTTP/1.0\r\nContent-Type: application/json\r\nContent-Length: " +
              std::to_string(body.size()) + "\r\n\r\n" + body);
  auto response = stream.Read();
  EXPECT_EQ(response.Header("Transfer-Encoding"), "");
  EXPECT_THAT(response.body, HasSubstr("[DONE]"));
}

TEST(BrokenHttpTest, ExpectContinue) {
  ServerOptions options = testing::TestOptions();
  options.listen.max_body_bytes = 1000;
  TestServer server(options);
  HttpClient client = server.Connect();
  std::string body = R"({"prompt": "x"})";
  client.Send(
      "POST /tokenize HTTP/1.1\r\nExpect: 100-continue\r\nContent-Type: application/json\r\n"
      "Content-Length: " +
      std::to_string(body.size()) + "\r\n\r\n");
  ASSERT_TRUE(client.Fill());
  EXPECT_THAT(client.buffer(), HasSubstr("HTTP/1.1 100 Continue\r\n\r\n"));
  client.Send(body);
  EXPECT_EQ(client.Read().status, 200);
  client.Send("POST /tokenize HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 5000\r\n\r\n");
  auto refused = client.Read();
  EXPECT_EQ(refused.status, 413);
  EXPECT_EQ(refused.Header("Connection"), "close");
}

TEST(StopTest, DrainsWhatRuns) {
  TestServer server;
  server.engine().SetPace(std::chrono::milliseconds(20));
  server.Say("</think>a b c d e f g h");
  HttpClient running = server.Connect();
  running.Send(HttpClient::RequestText(
      "POST", kChat, Json{{"messages", UserMessage("Hi")}, {"stream", true}}.dump()));
  HttpClient idle = server.Connect();
  EXPECT_EQ(idle.Get("/health").status, 200);
  ASSERT_TRUE(WaitFor([&] { return server.engine().num_active() == 1; }));
  int port = server.server().port();
  std::thread stopper([&] { server.server().Stop(absl::Seconds(20)); });
  EXPECT_TRUE(idle.IsClosed());
  EXPECT_TRUE(WaitFor([&] { return !HttpClient(port).connected(); }));
  auto response = running.Read();
  EXPECT_TRUE(response.complete);
  EXPECT_THAT(response.body, HasSubstr("\"finish_reason\":\"stop\""));
  stopper.join();
  EXPECT_EQ(server.engine().num_active(), 0);
}

TEST(StopTest, AbortsAfterTheDeadline) {
  TestServer server(testing::TestOptions(), 1000000);
  SayForever(server);
  server.engine().SetPace(std::chrono::milliseconds(5));
  HttpClient stream = server.Connect();
  stream.Send(ChatText(true));
  HttpClient whole = server.Connect();
  whole.Send(ChatText(false));
  ASSERT_TRUE(WaitFor([&] { return server.engine().num_active() == 2; }));
  EXPECT_LT(Milliseconds([&] { server.server().Stop(absl::ZeroDuration()); }), 2000);
  auto response = stream.Read();
  EXPECT_TRUE(response.complete) << "a stream must end properly";
  EXPECT_THAT(response.body, HasSubstr("\"finish_reason\":\"abort\""));
  EXPECT_THAT(whole.Read().body, HasSubstr("\"finish_reason\":\"abort\""));
  EXPECT_TRUE(WaitFor([&] { return server.engine().num_active() == 0; }));
  server.server().Stop(absl::ZeroDuration());  // twice does no harm
}

TEST(StopTest, AScriptMayBreakTheConnection) {
  TestServer server;
  server.SayBy([](const engine::Request&) {
    testing::Script script{testing::TinyTokenizer().Encode("half"), engine::FinishReason::kAbort,
                           ""};
    script.disconnect = true;
    return script;
  });
  HttpClient client = server.Connect();
  client.Send(HttpClient::RequestText(
      "POST", kChat, Json{{"messages", UserMessage("Hi")}, {"stream", true}}.dump()));
  auto response = client.Read();
  EXPECT_EQ(response.status, 200);
  EXPECT_FALSE(response.complete);
  EXPECT_TRUE(server.IsFree());
}

TEST(HealthTest, AnswersWhileALongPromptIsTokenised) {
  TestServer server(testing::TestOptions(), 1000000);
  server.Say("x");
  HttpClient client = server.Connect();
  client.SetTimeout(100000);
  std::string text;
  while (text.size() < (2 << 20)) text += "lorem ipsum \xE4\xBD\xA0\xE5\xA5\xBD";
  client.Send(HttpClient::RequestText("POST", "/tokenize", Json{{"prompt", text}}.dump()));
  for (int i = 0; i < 20; ++i) {
    EXPECT_LT(Milliseconds([&] { EXPECT_EQ(server.Get("/health").status, 200); }), 500);
  }
  EXPECT_EQ(client.Read().status, 200);
}

}  // namespace
}  // namespace fulgur::server

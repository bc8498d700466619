// A hundred megabytes at once: read, understood and refused, without running out of anything.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "server/testing/server_fixture.h"

namespace fulgur::server {
namespace {

using ::testing::HasSubstr;
using testing::HttpClient;
using testing::Json;
using testing::TestServer;
using testing::UserMessage;

const char kChat[] = "/v1/chat/completions";

TEST(LargeBodyTest, AHundredMegabytesAreRefusedInASentence) {
  TestServer server;
  std::string text(100 << 20, 'x');
  HttpClient client = server.Connect();
  client.SetTimeout(100000);
  auto response = client.Post(kChat, Json{{"messages", UserMessage(text)}}.dump());
  EXPECT_EQ(response.status, 400);
  EXPECT_THAT(response.body, HasSubstr("maximum context length is 2000 tokens"));
  // Values instead of text: refused by their number, not by running out of memory.
  std::string list = "[";
  for (int i = 0; i < 12000000; ++i) list += "[],";
  list.back() = ']';
  response = client.Post(kChat, R"({"messages":)" + list + "}");
  EXPECT_EQ(response.status, 400);
  EXPECT_THAT(response.body, HasSubstr("more than 10000000 values"));
  EXPECT_TRUE(server.IsFree());
}

}  // namespace
}  // namespace fulgur::server

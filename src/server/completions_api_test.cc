// Plain completions from end to end.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "server/testing/server_fixture.h"

namespace fulgur::server {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::Json;
using testing::TestServer;

class CompletionsApiTest : public ::testing::Test {
 protected:
  Json Complete(const Json& body) {
    auto response = server_.Post("/v1/completions", body);
    EXPECT_EQ(response.status, 200) << response.body;
    return Json::parse(response.body);
  }
  std::vector<Json> Stream(Json body) {
    body["stream"] = true;
    auto response = server_.Post("/v1/completions", body);
    EXPECT_EQ(response.status, 200) << response.body;
    bool done = false;
    std::vector<Json> events;
    for (const auto& event : testing::Events(response.body, &done)) {
      events.push_back(Json::parse(event));
      EXPECT_EQ(events.back()["object"], "text_completion");
    }
    EXPECT_TRUE(done);
    return events;
  }
  static std::string TextOf(const std::vector<Json>& events, size_t choice = 0) {
    std::string text;
    for (const Json& event : events) {
      for (const Json& part : event["choices"]) {
        if (part["index"] == choice) text += part["text"].get<std::string>();
      }
    }
    return text;
  }

  TestServer server_;
};

TEST_F(CompletionsApiTest, RawText) {
  server_.Say("Hm.</think>answer");
  Json answer = Complete({{"prompt", "Hi"}, {"max_tokens", 50}});
  EXPECT_THAT(answer["id"].get<std::string>(), HasSubstr("cmpl-"));
  EXPECT_EQ(answer["object"], "text_completion");
  EXPECT_EQ(answer["choices"][0]["text"], "Hm.</think>answer");
  EXPECT_EQ(answer["choices"][0]["finish_reason"], "stop");
  EXPECT_EQ(answer["usage"]["prompt_tokens"], testing::TinyTokenizer().Encode("Hi").size());
  EXPECT_EQ(server_.engine().requests().back().script_key, "Hi");
  EXPECT_EQ(TextOf(Stream({{"prompt", "Hi"}, {"max_tokens", 50}})), "Hm.</think>answer");
}

// What the prompt ends with is not the answer's to complete or to show.
TEST_F(CompletionsApiTest, APromptMayEndInsideACharacter) {
  auto prompt = testing::TinyTokenizer().Encode("Hi \xF0\x9F\x98\x80");
  prompt.pop_back();
  ASSERT_NE(testing::TinyTokenizer().Decode(prompt), "Hi ");
  server_.Say("new");
  EXPECT_EQ(Complete({{"prompt", prompt}})["choices"][0]["text"], "new");
  EXPECT_EQ(TextOf(Stream({{"prompt", prompt}})), "new");
}

TEST_F(CompletionsApiTest, SixteenTokensByDefault) {
  server_.Say(std::string(200, '~'));
  Json answer = Complete({{"prompt", "Hi"}});
  EXPECT_EQ(answer["usage"]["completion_tokens"], 16);
  EXPECT_EQ(answer["choices"][0]["finish_reason"], "length");
}

TEST_F(CompletionsApiTest, SpecialTokensShowOnRequest) {
  server_.Say("x");
  Json body = {{"prompt", "Hi"}, {"skip_special_tokens", false}};
  EXPECT_THAT(Complete(body)["choices"][0]["text"].get<std::string>(),
              HasSubstr("end\xE2\x96\x81of\xE2\x96\x81sentence"));
}

TEST_F(CompletionsApiTest, PromptsOfAllKinds) {
  server_.SayBy([](const engine::Request& request) {  // repeats the prompt
    return testing::Script{request.prompt, engine::FinishReason::kStop, ""};
  });
  auto ids = testing::TinyTokenizer().Encode("some text");
  EXPECT_EQ(Complete({{"prompt", ids}})["choices"][0]["text"], "some text");
  Json many = Complete({{"prompt", {"one", "two", "three"}}, {"n", 2}});
  ASSERT_EQ(many["choices"].size(), 6);
  for (size_t i = 0; i < 6; ++i) {
    EXPECT_EQ(many["choices"][i]["index"], i);
    EXPECT_EQ(many["choices"][i]["text"], (std::vector<std::string>{"one", "two", "three"})[i / 2]);
  }
  Json lists = Complete({{"prompt", {ids, ids}}});
  EXPECT_EQ(lists["choices"][1]["text"], "some text");
  EXPECT_EQ(lists["usage"]["prompt_tokens"], 2 * ids.size());
  auto events = Stream({{"prompt", {"one", "two"}}, {"n", 2}});
  EXPECT_EQ(TextOf(events, 3), "two");
  EXPECT_TRUE(server_.IsFree());
}

TEST_F(CompletionsApiTest, Echo) {
  server_.Say(" world");
  Json body = {{"prompt", "Hello"}, {"echo", true}, {"max_tokens", 50}};
  EXPECT_EQ(Complete(body)["choices"][0]["text"], "Hello world");
  EXPECT_EQ(TextOf(Stream(body)), "Hello world");
  body["prompt"] = testing::TinyTokenizer().Encode("Hello");
  EXPECT_EQ(Complete(body)["choices"][0]["text"], "Hello world");

  body["logprobs"] = 1;
  const Json logprobs = Complete(body)["choices"][0]["logprobs"];
  EXPECT_TRUE(logprobs["token_logprobs"][0].is_null());
  EXPECT_EQ(logprobs["token_logprobs"][1], -1.25);
  EXPECT_TRUE(logprobs["top_logprobs"][0].is_null());
  std::string joined;
  for (size_t i = 0; i < logprobs["tokens"].size(); ++i) {
    EXPECT_EQ(logprobs["text_offset"][i], joined.size());
    joined += logprobs["tokens"][i].get<std::string>();
  }
  EXPECT_THAT(joined, HasSubstr("Hello world"));
  Json streamed = Json::array();
  for (const Json& event : Stream(body)) {
    for (const Json& part : event["choices"]) {
      if (part["logprobs"].is_null()) continue;
      for (const Json& token : part["logprobs"]["tokens"]) streamed.push_back(token);
    }
  }
  EXPECT_EQ(streamed, logprobs["tokens"]);
}

TEST_F(CompletionsApiTest, EchoOfThePromptAlone) {
  server_.Say("never seen");
  Json body = {{"prompt", "Hello"}, {"echo", true}, {"max_tokens", 0}, {"logprobs", 0}};
  Json answer = Complete(body);
  EXPECT_EQ(answer["usage"]["completion_tokens"], 0);
  const Json& choice = answer["choices"][0];
  EXPECT_EQ(choice["text"], "Hello");
  auto events = Stream(body);
  EXPECT_EQ(TextOf(events), "Hello");
  EXPECT_EQ(events[0]["choices"][0]["logprobs"], choice["logprobs"]);
  EXPECT_EQ(choice["finish_reason"], "length");
  EXPECT_EQ(choice["logprobs"]["tokens"].size(), testing::TinyTokenizer().Encode("Hello").size());
}

TEST_F(CompletionsApiTest, Logprobs) {
  server_.Say("ab");
  Json body = {{"prompt", "Hi"}, {"logprobs", 2}};
  const Json logprobs = Complete(body)["choices"][0]["logprobs"];
  ASSERT_GE(logprobs["tokens"].size(), 2);
  EXPECT_EQ(logprobs["token_logprobs"][0], -0.5);
  EXPECT_EQ(logprobs["top_logprobs"][0].size(), 2);
  body["return_tokens_as_token_ids"] = true;
  EXPECT_THAT(Complete(body)["choices"][0]["logprobs"]["tokens"][0].get<std::string>(),
              HasSubstr("token_id:"));
  body["logprobs"] = 0;
  EXPECT_EQ(Complete(body)["choices"][0]["logprobs"]["top_logprobs"][0].size(), 1);
}

TEST_F(CompletionsApiTest, TokenIds) {
  server_.Say("ab");
  Json body = {{"prompt", "Hi"}, {"return_token_ids", true}};
  Json choice = Complete(body)["choices"][0];
  auto expected = testing::TinyTokenizer().Encode("ab");
  expected.push_back(testing::kEos);
  EXPECT_EQ(choice["token_ids"], Json(expected));
  EXPECT_EQ(choice["prompt_token_ids"], Json(testing::TinyTokenizer().Encode("Hi")));
  Json streamed = Json::array();
  for (const Json& event : Stream(body)) {
    for (const Json& part : event["choices"]) {
      for (const Json& id : part["token_ids"]) streamed.push_back(id);
    }
  }
  EXPECT_EQ(streamed, Json(expected));
}

TEST_F(CompletionsApiTest, FillInTheMiddle) {
  server_.Say("middle");
  Complete({{"prompt", "before"}, {"suffix", "after"}});
  const auto prompt = server_.engine().requests().back().prompt;
  for (const char* name : {"begin", "hole", "end"}) {
    auto id = testing::TinyTokenizer().FindAddedToken(std::string("<\xEF\xBD\x9C"
                                                                  "fim\xE2\x96\x81") +
                                                      name + "\xEF\xBD\x9C>");
    ASSERT_TRUE(id.has_value()) << name;
    EXPECT_EQ(std::count(prompt.begin(), prompt.end(), *id), 1) << name;
  }
}

TEST_F(CompletionsApiTest, Truncation) {
  server_.Say("x");
  std::vector<int32_t> ids;
  for (int32_t i = 0; i < 100; ++i) ids.push_back(10 + i);
  auto kept = [&](const Json& fields) {
    Json body = {{"prompt", ids}};
    body.update(fields);
    Complete(body);
    return server_.engine().requests().back().prompt;
  };
  EXPECT_THAT(kept({{"truncate_prompt_tokens", 2}}), ElementsAre(108, 109));
  EXPECT_THAT(kept({{"truncate_prompt_tokens", 2}, {"truncation_side", "right"}}),
              ElementsAre(10, 11));
  EXPECT_EQ(kept({{"truncate_prompt_tokens", -1}}).size(), 100);
}

TEST_F(CompletionsApiTest, TokensOnly) {
  ServerOptions options = testing::TestOptions();
  TestServer server(options, 2000, /*with_tokenizer=*/false);
  server.Say("ab");
  auto response = server.Post("/v1/completions", {{"prompt", {5, 6}}, {"logprobs", 1}});
  ASSERT_EQ(response.status, 200) << response.body;
  const Json choice = Json::parse(response.body)["choices"][0];
  auto expected = testing::TinyTokenizer().Encode("ab");
  expected.push_back(testing::kEos);
  EXPECT_EQ(choice["text"], "");
  EXPECT_EQ(choice["token_ids"], Json(expected));
  EXPECT_EQ(choice["logprobs"]["tokens"][0], "token_id:" + std::to_string(expected[0]));
  response = server.Post("/v1/completions", {{"prompt", {5, 6}}, {"stream", true}});
  Json streamed = Json::array();
  for (const auto& event : testing::Events(response.body)) {
    const Json chunk = Json::parse(event);
    for (const Json& id : chunk["choices"][0]["token_ids"]) streamed.push_back(id);
  }
  EXPECT_EQ(streamed, Json(expected));
  EXPECT_EQ(server.Post("/v1/completions", {{"prompt", "text"}}).status, 400);
  EXPECT_EQ(server.Post("/v1/completions", {{"prompt", {5}}, {"stop", "x"}}).status, 400);
  EXPECT_EQ(server.Chat({{"messages", testing::UserMessage("Hi")}}).status, 400);
  EXPECT_EQ(server.Post("/tokenize", {{"prompt", "x"}}).status, 501);
  EXPECT_EQ(server.Get("/v1/models").status, 200);
}

TEST_F(CompletionsApiTest, UsageInStreams) {
  server_.Say("abc");
  auto events = Stream({{"prompt", "Hi"}, {"stream_options", {{"include_usage", true}}}});
  EXPECT_TRUE(events.back()["choices"].empty());
  EXPECT_GT(events.back()["usage"]["completion_tokens"], 0);
}

}  // namespace
}  // namespace fulgur::server

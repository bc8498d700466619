// Chat completions from end to end: what clients see for what a model writes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "server/testing/server_fixture.h"

namespace fulgur::server {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::Json;
using ::testing::Not;
using testing::TestServer;
using testing::UserMessage;

constexpr char kDsml[] =
    "\xEF\xBD\x9C"
    "DSML"
    "\xEF\xBD\x9C";

std::string Dsml(std::string text) {
  for (size_t at; (at = text.find('@')) != std::string::npos;) text.replace(at, 1, kDsml);
  return text;
}

const Json kTools = Json::parse(R"([
  {"type": "function", "function": {"name": "weather", "parameters": {"type": "object",
    "properties": {"city": {"type": "string"}, "days": {"type": "integer"}}}}},
  {"type": "function", "function": {"name": "clock", "parameters": {"type": "object"}}}])");

std::string TwoCalls() {
  return Dsml(
      "I look.</think>Let me see.\n\n<@tool_calls>\n<@invoke name=\"weather\">\n"
      "<@parameter name=\"city\" string=\"true\">L\xC3\xBCtt \"x\"</@parameter>\n"
      "<@parameter name=\"days\" string=\"false\">3</@parameter>\n</@invoke>\n"
      "<@invoke name=\"clock\">\n</@invoke>\n</@tool_calls>");
}

// What the chunks of one choice add up to.
struct Streamed {
  std::string role, reasoning, reasoning_content, content, finish;
  Json stop_reason;
  std::vector<Json> calls;  // {id, name, arguments}
  std::vector<int32_t> token_ids;
  Json logprobs = Json::array();
  size_t chunks = 0;
};

void AddCall(const Json& entry, std::vector<Json>* calls) {
  auto index = entry["index"].get<size_t>();
  if (index == calls->size()) {
    EXPECT_TRUE(entry.contains("id"));
    EXPECT_EQ(entry["type"], "function");
    calls->push_back({{"id", entry["id"]}, {"name", entry["function"]["name"]}, {"arguments", ""}});
  } else {
    EXPECT_FALSE(entry.contains("id")) << "id once per call";
  }
  ASSERT_LT(index, calls->size());
  auto& arguments = (*calls)[index]["arguments"].get_ref<std::string&>();
  arguments += entry["function"]["arguments"].get<std::string>();
}

Streamed Collect(const std::vector<std::string>& events, size_t choice = 0) {
  Streamed streamed;
  for (const std::string& event : events) {
    Json json = Json::parse(event);
    EXPECT_EQ(json["object"], "chat.completion.chunk");
    for (const Json& part : json["choices"]) {
      if (part["index"] != choice) continue;
      ++streamed.chunks;
      const Json& delta = part["delta"];
      streamed.role += delta.value("role", "");
      streamed.content += delta.value("content", "");
      streamed.reasoning += delta.value("reasoning", "");
      streamed.reasoning_content += delta.value("reasoning_content", "");
      for (const Json& call : delta.value("tool_calls", Json::array())) {
        AddCall(call, &streamed.calls);
      }
      if (part["logprobs"].is_object()) {
        for (const Json& entry : part["logprobs"]["content"]) streamed.logprobs.push_back(entry);
      }
      if (part.contains("token_ids") && part["token_ids"].is_array()) {
        for (const Json& id : part["token_ids"]) streamed.token_ids.push_back(id);
      }
      if (part["finish_reason"].is_null()) continue;
      EXPECT_EQ(streamed.finish, "") << "finished twice";
      streamed.finish = part["finish_reason"];
      streamed.stop_reason = part["stop_reason"];
    }
  }
  return streamed;
}

class ChatApiTest : public ::testing::Test {
 protected:
  Json Chat(const Json& body) {
    auto response = server_.Chat(body);
    EXPECT_EQ(response.status, 200) << response.body;
    return Json::parse(response.body);
  }
  std::vector<std::string> Stream(Json body) {
    body["stream"] = true;
    auto response = server_.Chat(body);
    EXPECT_EQ(response.status, 200) << response.body;
    EXPECT_TRUE(response.complete);
    EXPECT_EQ(response.Header("Content-Type"), "text/event-stream; charset=utf-8");
    bool done = false;
    auto events = testing::Events(response.body, &done);
    EXPECT_TRUE(done);
    return events;
  }

  TestServer server_;
  const Json request_ = {{"model", "alias"}, {"messages", UserMessage("Hi")}};
};

TEST_F(ChatApiTest, WholeAnswer) {
  server_.Say("I think.</think>Hello, \xE4\xBD\xA0\xE5\xA5\xBD!");
  Json answer = Chat(request_);
  EXPECT_THAT(answer["id"].get<std::string>(), HasSubstr("chatcmpl-"));
  EXPECT_EQ(answer["object"], "chat.completion");
  EXPECT_EQ(answer["model"], "dsv4");
  const Json& choice = answer["choices"][0];
  EXPECT_EQ(choice["finish_reason"], "stop");
  EXPECT_TRUE(choice["stop_reason"].is_null());
  std::vector<std::string> keys;
  for (const auto& [key, value] : choice["message"].items()) keys.push_back(key);
  EXPECT_THAT(keys, ElementsAre("role", "content", "refusal", "annotations", "audio",
                                "function_call", "reasoning", "reasoning_content"));
  EXPECT_EQ(choice["message"]["content"], "Hello, \xE4\xBD\xA0\xE5\xA5\xBD!");
  EXPECT_EQ(choice["message"]["reasoning"], "I think.");
  EXPECT_EQ(choice["message"]["reasoning_content"], "I think.");
  const Json& usage = answer["usage"];
  EXPECT_EQ(usage["total_tokens"],
            usage["prompt_tokens"].get<int>() + usage["completion_tokens"].get<int>());
  EXPECT_EQ(usage["completion_tokens_details"]["reasoning_tokens"],
            testing::TinyTokenizer().Encode("I think.").size());
  EXPECT_THAT(answer["system_fingerprint"].get<std::string>(), HasSubstr("fulgur-0.0-test-"));
  EXPECT_TRUE(answer["kv_transfer_params"].is_null());
  EXPECT_TRUE(server_.IsFree());
}

TEST_F(ChatApiTest, ChatModeHasNoReasoning) {
  server_.Say("Just this.");
  for (Json fields :
       {Json{{"reasoning_effort", "none"}}, Json{{"thinking", {{"type", "disabled"}}}},
        Json{{"chat_template_kwargs", {{"thinking", false}}}},
        Json{{"chat_template_kwargs", {{"enable_thinking", false}}}}}) {
    Json body = request_;
    body.update(fields);
    Json answer = Chat(body);
    EXPECT_EQ(answer["choices"][0]["message"]["content"], "Just this.") << fields;
    EXPECT_TRUE(answer["choices"][0]["message"]["reasoning"].is_null());
    EXPECT_EQ(answer["usage"]["completion_tokens_details"]["reasoning_tokens"], 0);
  }
}

TEST_F(ChatApiTest, StreamAddsUpToTheWholeAnswer) {
  for (const std::string& text :
       {std::string("Plain reasoning that never ends"), std::string("Short.</think>Answer."),
        std::string("</think>\n\nAnswer \xF0\x9F\x98\x80 with <b> and 2>&1"), std::string(""),
        TwoCalls(), Dsml("</think>x\n\n<@tool_calls>\n</@tool_calls>")}) {
    for (size_t per_step : {1U, 3U, 1000U}) {
      SCOPED_TRACE(text + " " + std::to_string(per_step));
      server_.engine().SetPace(std::chrono::milliseconds(0), per_step);
      server_.Say(text);
      Json body = request_;
      body["tools"] = kTools;
      body["logprobs"] = true;
      body["return_token_ids"] = true;
      const Json whole = Chat(body)["choices"][0];
      const Json& message = whole["message"];
      Streamed streamed = Collect(Stream(body));
      EXPECT_EQ(streamed.role, "assistant");
      auto text_of = [&](const char* key) {
        return message.contains(key) && message[key].is_string() ? message[key].get<std::string>()
                                                                 : std::string();
      };
      EXPECT_EQ(streamed.content, text_of("content"));
      EXPECT_EQ(streamed.reasoning, text_of("reasoning"));
      EXPECT_EQ(streamed.reasoning_content, text_of("reasoning"));
      EXPECT_EQ(streamed.finish, whole["finish_reason"].get<std::string>());
      EXPECT_EQ(Json(streamed.token_ids), whole["token_ids"]);
      EXPECT_EQ(streamed.logprobs, whole["logprobs"]["content"]);
      EXPECT_EQ(streamed.logprobs.size(), streamed.token_ids.size());
      Json calls = message.value("tool_calls", Json::array());
      ASSERT_EQ(streamed.calls.size(), calls.size());
      for (size_t i = 0; i < calls.size(); ++i) {
        EXPECT_EQ(streamed.calls[i]["name"], calls[i]["function"]["name"]);
        EXPECT_EQ(streamed.calls[i]["arguments"], calls[i]["function"]["arguments"]);
      }
    }
  }
}

// Whatever ids a model gives: valid JSON, one [DONE], and the stream adds up to the whole answer.
TEST_F(ChatApiTest, AnyTokensMakeValidAnswers) {
  constexpr unsigned kSeed = 20240917;
  SCOPED_TRACE("seed " + std::to_string(kSeed));
  std::mt19937 random(kSeed);
  const auto vocab = static_cast<unsigned>(testing::TinyTokenizer().vocab_size());
  for (int round = 0; round < 200; ++round) {
    testing::Script script;
    for (unsigned i = 0; i < 1 + random() % 30; ++i) {
      bool marker = random() % 4 == 0;  // ids behind the byte pairs are markers
      script.tokens.push_back(
          static_cast<int32_t>(marker ? 577 + random() % 17 : 2 + random() % (vocab - 2)));
    }
    if (random() % 2 == 0) script.finish = engine::FinishReason::kLength;
    server_.SayBy([script](const engine::Request&) { return script; });
    server_.engine().SetPace(std::chrono::milliseconds(0), 1 + random() % 5);
    Json body = request_;
    body["tools"] = kTools;
    if (random() % 3 == 0) body["stop"] = {"e", "th"};
    const Json whole = Chat(body)["choices"][0];
    Streamed streamed = Collect(Stream(body));
    const Json& content = whole["message"]["content"];
    EXPECT_EQ(streamed.content, content.is_null() ? "" : content.get<std::string>());
    EXPECT_EQ(streamed.finish, whole["finish_reason"].get<std::string>());
    EXPECT_EQ(streamed.stop_reason, whole["stop_reason"]);
  }
}

TEST_F(ChatApiTest, ALimitInTheMiddleOfACharacter) {
  server_.Say("</think>\xF0\x9F\x98\x80\xF0\x9F\x8C\x8D\xF0\x9F\xA6\x84");
  for (int limit = 1; limit <= 14; ++limit) {
    Json body = request_;
    body["max_tokens"] = limit;
    const Json choice = Chat(body)["choices"][0];
    const Json& content = choice["message"]["content"];
    EXPECT_EQ(Collect(Stream(body)).content, content.is_null() ? "" : content.get<std::string>());
  }
}

TEST_F(ChatApiTest, StopStringsThatCannotMatchHoldNothingBack) {
  server_.Say("</think>one two three");
  Json body = request_;
  body["stop"] = {"zebra"};
  size_t with_stop = Stream(body).size();
  body.erase("stop");
  auto events = Stream(body);
  EXPECT_EQ(with_stop, events.size());
  for (size_t i = 1; i < events.size(); ++i)
    EXPECT_THAT(events[i], Not(HasSubstr("\"content\":\"\"")));
}

TEST_F(ChatApiTest, ToolCalls) {
  server_.Say(TwoCalls());
  Json body = request_;
  body["tools"] = kTools;
  const Json choice = Chat(body)["choices"][0];
  const Json& calls = choice["message"]["tool_calls"];
  ASSERT_EQ(calls.size(), 2);
  EXPECT_EQ(choice["finish_reason"], "tool_calls");
  EXPECT_EQ(choice["message"]["content"], "Let me see.");
  EXPECT_EQ(calls[0]["function"]["name"], "weather");
  EXPECT_EQ(calls[0]["function"]["arguments"],
            "{\"city\": \"L\xC3\xBCtt \\\"x\\\"\", \"days\": 3}");
  EXPECT_EQ(calls[1]["function"]["arguments"], "{}");
  EXPECT_NE(calls[0]["id"], calls[1]["id"]);
  EXPECT_THAT(calls[0]["id"].get<std::string>(), HasSubstr("chatcmpl-tool-"));
  EXPECT_THAT(server_.Get("/metrics").body,
              HasSubstr("mode=\"non_streaming\",outcome=\"tool_call\",request_type=\"chat_"
                        "completions\"} 1.0"));

  body["parallel_tool_calls"] = false;
  EXPECT_EQ(Chat(body)["choices"][0]["message"]["tool_calls"].size(), 1);
  body["tool_choice"] = "none";
  const Json none = Chat(body)["choices"][0];
  EXPECT_FALSE(none["message"].contains("tool_calls"));
  EXPECT_EQ(none["finish_reason"], "stop");
}

TEST_F(ChatApiTest, DefaultsMayBeSpeltOut) {
  server_.Say(TwoCalls());
  Json body = request_;
  body["tools"] = kTools;
  const Json plain = Chat(body)["choices"][0];
  const auto prompt = server_.engine().requests().back().prompt;
  body.update({{"tool_choice", "auto"}, {"parallel_tool_calls", true}, {"n", 1}});
  Json choice = Chat(body)["choices"][0];
  EXPECT_EQ(server_.engine().requests().back().prompt, prompt);
  EXPECT_EQ(choice["finish_reason"], plain["finish_reason"]);
  EXPECT_EQ(choice["message"]["tool_calls"].size(), 2);
  body["tools"][0]["function"]["strict"] = true;
  choice = Chat(body)["choices"][0];
  EXPECT_EQ(choice["message"]["tool_calls"].size(), 2);
}

TEST_F(ChatApiTest, CutCallsEndWithLength) {
  std::string text = TwoCalls();
  server_.Say(text.substr(0, text.find("days")), engine::FinishReason::kLength);
  Json body = request_;
  body["tools"] = kTools;
  const Json choice = Chat(body)["choices"][0];
  EXPECT_EQ(choice["finish_reason"], "length");
  Streamed streamed = Collect(Stream(body));
  EXPECT_EQ(streamed.finish, "length");
  EXPECT_THAT(choice["message"]["content"].get<std::string>(), Not(HasSubstr("DSML")));
  EXPECT_THAT(streamed.content, Not(HasSubstr("DSML")));
}

// Tags outside of a call reach nobody, streamed or whole, and the log says that there were some.
TEST_F(ChatApiTest, StrayMarkupIsLeftOut) {
  Json body = request_;
  body["tools"] = kTools;
  for (const std::string& text :
       {std::string("</think>Done.\n</@invoke>\n</@tool_calls>"),
        std::string("</think>Done.\n<@parameter name=\"city\" string=\"true\">"),
        std::string("</think>Done.\n\n<@tool_ca"), std::string("</think>Done.\n</@par"),
        std::string("</think>Done.\n\n<@tool_calls>\nweather(Oslo)\n</@tool_calls>"),
        std::string("</think>Done.\n<@invoke name=\"weather\">\n<@parameter name=\"city\">Os")}) {
    for (auto end : {engine::FinishReason::kStop, engine::FinishReason::kLength}) {
      server_.Say(Dsml(text), end);
      ::testing::internal::CaptureStdout();
      const Json choice = Chat(body)["choices"][0];
      Streamed streamed = Collect(Stream(body));
      const std::string log = ::testing::internal::GetCapturedStdout();
      const std::string finish = end == engine::FinishReason::kStop ? "stop" : "length";
      EXPECT_EQ(choice["message"]["content"], "Done.") << text;
      EXPECT_EQ(choice["finish_reason"], finish);
      EXPECT_FALSE(choice["message"].contains("tool_calls"));
      EXPECT_EQ(streamed.content, "Done.");
      EXPECT_EQ(streamed.finish, finish);
      EXPECT_TRUE(streamed.calls.empty());
      EXPECT_THAT(log, HasSubstr("holds malformed tool calls"));
    }
  }
}

// The server opens the call for the model: in the prompt, or behind its reasoning.
TEST_F(ChatApiTest, ForcedCalls) {
  const std::string call = Dsml("<@invoke name=\"clock\">\n</@invoke>\n</@tool_calls>");
  server_.SayBy([&](const engine::Request& request) {
    std::string prompt = testing::TinyTokenizer().Decode(request.prompt);
    std::string opening = Dsml("<@tool_calls>\n");
    bool opened = prompt.size() >= opening.size() &&
                  prompt.compare(prompt.size() - opening.size(), opening.size(), opening) == 0;
    std::string text = opened ? call : "I must call.</think>No, I would rather talk.";
    return testing::Script{testing::TinyTokenizer().Encode(text), engine::FinishReason::kStop, ""};
  });
  Json body = request_;
  body["tools"] = kTools;
  body["tool_choice"] = "required";
  for (const char* effort : {"high", "none"}) {
    body["reasoning_effort"] = effort;
    const Json choice = Chat(body)["choices"][0];
    EXPECT_EQ(choice["finish_reason"], "tool_calls") << effort << choice;
    EXPECT_EQ(choice["message"]["content"], "");
    ASSERT_EQ(choice["message"]["tool_calls"].size(), 1) << choice;
    EXPECT_EQ(choice["message"]["tool_calls"][0]["function"]["name"], "clock");
    Streamed streamed = Collect(Stream(body));
    EXPECT_EQ(streamed.finish, "tool_calls");
    EXPECT_EQ(streamed.calls.size(), 1);
    EXPECT_EQ(streamed.reasoning, std::string(effort) == "high" ? "I must call." : "");
  }
  EXPECT_TRUE(server_.IsFree());
}

TEST_F(ChatApiTest, NamedCalls) {
  server_.SayBy([&](const engine::Request& request) {
    std::string prompt = testing::TinyTokenizer().Decode(request.prompt);
    std::string opening = Dsml("<@invoke name=\"weather\">\n");
    bool opened = prompt.size() >= opening.size() &&
                  prompt.compare(prompt.size() - opening.size(), opening.size(), opening) == 0;
    std::string text = opened ? Dsml(
                                    "<@parameter name=\"city\" string=\"true\">Lyon</@parameter>\n"
                                    "</@invoke>\n</@tool_calls>")
                              : "Hm.</think>no";
    return testing::Script{testing::TinyTokenizer().Encode(text), engine::FinishReason::kStop, ""};
  });
  Json body = request_;
  body["tools"] = kTools;
  body["tool_choice"] = {{"type", "function"}, {"function", {{"name", "weather"}}}};
  for (const char* effort : {"high", "none"}) {
    body["reasoning_effort"] = effort;
    const Json choice = Chat(body)["choices"][0];
    EXPECT_EQ(choice["finish_reason"], "stop") << choice;
    ASSERT_EQ(choice["message"]["tool_calls"].size(), 1) << choice;
    EXPECT_EQ(choice["message"]["tool_calls"][0]["function"]["arguments"], "{\"city\": \"Lyon\"}");
  }
}

TEST_F(ChatApiTest, ThinkingBudget) {
  const auto close = *testing::TinyTokenizer().FindAddedToken("</think>");
  server_.SayBy([&](const engine::Request& request) {
    bool closed = request.prompt.back() == close;
    std::string text = closed ? "Now the answer." : "a b c d e f g h i j k l m n";
    return testing::Script{testing::TinyTokenizer().Encode(text), engine::FinishReason::kStop, ""};
  });
  for (int budget : {0, 1, 5}) {
    Json body = request_;
    body["thinking_token_budget"] = budget;
    Json answer = Chat(body);
    EXPECT_EQ(answer["usage"]["completion_tokens_details"]["reasoning_tokens"], budget);
    EXPECT_EQ(answer["choices"][0]["message"]["content"], "Now the answer.");
    EXPECT_EQ(Collect(Stream(body)).content, "Now the answer.");
  }
  Json body = request_;
  body["thinking_token_budget"] = -1;
  EXPECT_TRUE(Chat(body)["choices"][0]["message"]["content"].is_null());
  EXPECT_TRUE(server_.IsFree());
}

TEST_F(ChatApiTest, StopStrings) {
  server_.Say("</think>one two STOP three");
  for (bool include : {false, true}) {
    for (size_t per_step : {1U, 1000U}) {
      server_.engine().SetPace(std::chrono::milliseconds(0), per_step);
      Json body = request_;
      body["stop"] = {"never", "STOP"};
      body["include_stop_str_in_output"] = include;
      const Json choice = Chat(body)["choices"][0];
      EXPECT_EQ(choice["message"]["content"], include ? "one two STOP" : "one two ");
      EXPECT_EQ(choice["finish_reason"], "stop");
      EXPECT_EQ(choice["stop_reason"], "STOP");
      Streamed streamed = Collect(Stream(body));
      EXPECT_EQ(streamed.content, include ? "one two STOP" : "one two ");
      EXPECT_EQ(streamed.stop_reason, "STOP");
    }
  }
  EXPECT_TRUE(server_.IsFree());
}

TEST_F(ChatApiTest, StopStringsCountOnlyBehindMinTokens) {
  server_.Say("</think>a. b. c. d.");
  for (size_t per_step : {1U, 1000U}) {
    server_.engine().SetPace(std::chrono::milliseconds(0), per_step);
    Json body = request_;
    body["stop"] = {"."};
    EXPECT_EQ(Chat(body)["choices"][0]["message"]["content"], "a");
    body["min_tokens"] = testing::TinyTokenizer().Encode("</think>a. b.").size();
    const Json choice = Chat(body)["choices"][0];
    EXPECT_EQ(choice["message"]["content"], "a. b. c");
    EXPECT_EQ(choice["stop_reason"], ".");
    EXPECT_EQ(Collect(Stream(body)).content, "a. b. c");
  }
  EXPECT_TRUE(server_.IsFree());
}

TEST_F(ChatApiTest, StopTokens) {
  server_.Say("</think>one two STOP");
  auto ids = testing::TinyTokenizer().Encode("</think>one two STOP");
  Json body = request_;
  body["stop_token_ids"] = {ids[3]};
  const Json choice = Chat(body)["choices"][0];
  EXPECT_EQ(choice["stop_reason"], ids[3]);
  EXPECT_EQ(choice["finish_reason"], "stop");
  std::vector<int32_t> kept(ids.begin(), ids.begin() + 3);
  EXPECT_EQ("</think>" + choice["message"]["content"].get<std::string>(),
            testing::TinyTokenizer().Decode(kept));
}

TEST_F(ChatApiTest, Logprobs) {
  server_.Say("</think>ab");
  Json body = request_;
  body["logprobs"] = true;
  body["top_logprobs"] = 3;
  const Json content = Chat(body)["choices"][0]["logprobs"]["content"];
  ASSERT_GE(content.size(), 3);
  EXPECT_EQ(content[0]["token"], "</think>");
  EXPECT_EQ(content[0]["bytes"].size(), 8);
  EXPECT_EQ(content[0]["logprob"], -0.5);
  ASSERT_EQ(content[0]["top_logprobs"].size(), 3);
  EXPECT_EQ(content[0]["top_logprobs"][0]["token"], "</think>");
  body["top_logprobs"] = 0;
  EXPECT_TRUE(Chat(body)["choices"][0]["logprobs"]["content"][0]["top_logprobs"].empty());
  body["return_tokens_as_token_ids"] = true;
  EXPECT_THAT(Chat(body)["choices"][0]["logprobs"]["content"][0]["token"].get<std::string>(),
              HasSubstr("token_id:"));
  body.erase("logprobs");
  EXPECT_TRUE(Chat(body)["choices"][0]["logprobs"].is_null());
}

TEST_F(ChatApiTest, PromptDetails) {
  server_.Say("</think>x");
  Json body = request_;
  body["prompt_logprobs"] = 0;
  body["return_token_ids"] = true;
  body["return_prompt_text"] = true;
  Json answer = Chat(body);
  const Json& ids = answer["prompt_token_ids"];
  EXPECT_EQ(ids.size(), answer["usage"]["prompt_tokens"].get<size_t>());
  ASSERT_EQ(answer["prompt_logprobs"].size(), ids.size());
  EXPECT_TRUE(answer["prompt_logprobs"][0].is_null());
  const Json& second = answer["prompt_logprobs"][1][std::to_string(ids[1].get<int>())];
  EXPECT_EQ(second["logprob"], -1.25);
  EXPECT_EQ(second["rank"], 1);
  EXPECT_THAT(answer["prompt_text"].get<std::string>(), HasSubstr("Hi"));
}

TEST_F(ChatApiTest, SeveralChoices) {
  server_.Say("</think>same");
  Json body = request_;
  body["n"] = 3;
  body["seed"] = 7;
  Json answer = Chat(body);
  ASSERT_EQ(answer["choices"].size(), 3);
  for (size_t i = 0; i < 3; ++i) EXPECT_EQ(answer["choices"][i]["index"], i);
  std::vector<uint64_t> seeds;
  for (const auto& request : server_.engine().requests()) seeds.push_back(*request.params.seed);
  EXPECT_THAT(seeds, ElementsAre(7, 8, 9));
  body["stream_options"] = {{"include_usage", true}};
  auto events = Stream(body);
  for (size_t i = 0; i < 3; ++i) EXPECT_EQ(Collect(events, i).content, "same");
  EXPECT_EQ(Json::parse(events.back())["usage"], answer["usage"]);
}

TEST_F(ChatApiTest, ThousandsOfChoicesGoThroughTheEngineInParts) {
  server_.Say("</think>x");
  Json body = request_;
  for (int n : {2000, 16384}) {
    body["n"] = n;
    EXPECT_EQ(Chat(body)["choices"].size(), n);
  }
  EXPECT_TRUE(server_.IsFree());
}

TEST_F(ChatApiTest, UsageInStreams) {
  server_.Say("Hm.</think>x");
  Json body = request_;
  body["stream_options"] = {{"include_usage", true}, {"continuous_usage_stats", true}};
  auto events = Stream(body);
  int64_t last = -1;
  for (const std::string& event : events) {
    Json json = Json::parse(event);
    ASSERT_TRUE(json.contains("usage")) << event;
    EXPECT_GE(json["usage"]["completion_tokens"].get<int64_t>(), last);
    last = json["usage"]["completion_tokens"];
  }
  Json usage = Json::parse(events.back());
  EXPECT_TRUE(usage["choices"].empty());
  EXPECT_TRUE(usage.contains("system_fingerprint"));
  EXPECT_EQ(usage["usage"], Chat(request_)["usage"]);
  for (const std::string& event : Stream(request_)) EXPECT_THAT(event, Not(HasSubstr("usage")));
}

TEST_F(ChatApiTest, StreamIntervalGroupsTokens) {
  server_.Say("</think>a b c d e f g h i j k l m n o p");
  Json body = request_;
  size_t all = Stream(body).size();
  body["stream_interval"] = 8;
  auto events = Stream(body);
  EXPECT_LT(events.size() * 3, all);
  EXPECT_EQ(Collect(events).content, "a b c d e f g h i j k l m n o p");
}

TEST_F(ChatApiTest, ReasoningFieldNames) {
  for (auto [field, has_new, has_old] :
       {std::tuple(ReasoningField::kBoth, true, true),
        std::tuple(ReasoningField::kReasoning, true, false),
        std::tuple(ReasoningField::kReasoningContent, false, true)}) {
    ServerOptions options = testing::TestOptions();
    options.chat.reasoning_field = field;
    TestServer server(options);
    server.Say("Hm.</think>x");
    Json message = Json::parse(server.Chat(request_).body)["choices"][0]["message"];
    EXPECT_EQ(message.contains("reasoning"), has_new);
    EXPECT_EQ(message.contains("reasoning_content"), has_old);
  }
  server_.Say("Hm.</think>x");
  Json body = request_;
  body["include_reasoning"] = false;
  Json message = Chat(body)["choices"][0]["message"];
  EXPECT_TRUE(message["reasoning"].is_null());
  EXPECT_EQ(Collect(Stream(body)).reasoning, "");
}

TEST_F(ChatApiTest, WithoutParsersEverythingIsContent) {
  ServerOptions options = testing::TestOptions();
  options.chat.reasoning_parser = false;
  options.chat.tool_parser = false;
  options.chat.auto_tool_choice = false;
  TestServer server(options);
  server.Say("Hm.</think>x");
  Json answer = Json::parse(server.Chat(request_).body);
  EXPECT_EQ(answer["choices"][0]["message"]["content"], "Hm.</think>x");
  EXPECT_TRUE(answer["usage"]["completion_tokens_details"].is_null());
}

TEST_F(ChatApiTest, ContinuesAndEchoesTheLastMessage) {
  server_.Say(" blue");
  Json body = request_;
  body["messages"].push_back({{"role", "assistant"}, {"content", "The sky is"}});
  body["continue_final_message"] = true;
  body["add_generation_prompt"] = false;
  body["echo"] = true;
  EXPECT_EQ(Chat(body)["choices"][0]["message"]["content"], "The sky is blue");
  EXPECT_EQ(Collect(Stream(body)).content, "The sky is blue");
  body = request_;
  body["messages"].push_back({{"role", "assistant"}, {"content", "The sky is"}, {"prefix", true}});
  EXPECT_EQ(Chat(body)["choices"][0]["message"]["content"], " blue");
}

TEST_F(ChatApiTest, SamplingReachesTheEngine) {
  server_.Say("</think>x");
  Json body = request_;
  body.update({{"temperature", 0.005},
               {"top_p", 0.5},
               {"top_k", -1},
               {"min_p", 0.25},
               {"presence_penalty", 1},
               {"frequency_penalty", -1},
               {"repetition_penalty", 1.5},
               {"seed", -3},
               {"max_completion_tokens", 7},
               {"max_tokens", 5},
               {"min_tokens", 2},
               {"ignore_eos", true},
               {"priority", -4},
               {"speculative", 3},
               {"bad_words", {"ab"}},
               {"logit_bias", {{"5", 1000}}},
               {"allowed_token_ids", {1, 5}},
               {"stop_token_ids", {9}}});
  Chat(body);
  const auto request = server_.engine().requests().back();
  const auto& params = request.params;
  EXPECT_FLOAT_EQ(params.temperature, 0.01F);
  EXPECT_FLOAT_EQ(params.top_p, 0.5F);
  EXPECT_EQ(params.top_k, 0);
  EXPECT_FLOAT_EQ(params.min_p, 0.25F);
  EXPECT_EQ(params.seed, static_cast<uint64_t>(-3));
  EXPECT_EQ(params.max_tokens, 7);
  EXPECT_EQ(params.min_tokens, 2);
  EXPECT_TRUE(params.ignore_eos);
  EXPECT_EQ(request.priority, -4);
  EXPECT_EQ(request.max_drafts, 3);
  EXPECT_THAT(params.logit_bias, ElementsAre(std::pair(5, 100.0F)));
  EXPECT_THAT(params.allowed_token_ids, ElementsAre(1, 5));
  EXPECT_THAT(params.stop_token_ids, ElementsAre(9));
  EXPECT_FALSE(params.bad_words.empty());
  EXPECT_EQ(request.script_key, "Hi");

  Chat({{"messages", UserMessage("Hi")}, {"temperature", 0}, {"seed", -1}});
  const auto greedy = server_.engine().requests().back().params;
  EXPECT_EQ(greedy.temperature, 0.0F);
  EXPECT_FALSE(greedy.seed.has_value());
  EXPECT_GT(greedy.max_tokens, 1900);
}

TEST_F(ChatApiTest, DefaultsComeFromTheServer) {
  ServerOptions options = testing::TestOptions();
  options.sampling.temperature = 0.6F;
  options.sampling.top_p = 0.95F;
  options.sampling.max_new_tokens = 11;
  TestServer server(options);
  server.Say("</think>x");
  server.Chat(request_);
  const auto params = server.engine().requests().back().params;
  EXPECT_FLOAT_EQ(params.temperature, 0.6F);
  EXPECT_FLOAT_EQ(params.top_p, 0.95F);
  EXPECT_EQ(params.max_tokens, 11);
}

TEST_F(ChatApiTest, LenientTypes) {
  server_.Say("</think>x");
  Json body = request_;
  body.update({{"max_tokens", "16"},
               {"temperature", "0.5"},
               {"n", 1.0},
               {"stream", "false"},
               {"seed", nullptr},
               {"unknown_field", {{"a", 1}}},
               {"stop", nullptr},
               {"user", "someone"},
               {"metadata", Json::object()},
               {"service_tier", "auto"},
               {"response_format", {{"type", "text"}}},
               {"tools", nullptr}});
  EXPECT_EQ(Chat(body)["choices"][0]["message"]["content"], "x");
}

TEST_F(ChatApiTest, RequestIds) {
  server_.Say("</think>x");
  auto id_of = [&](const HeaderList& headers, Json fields = Json::object()) {
    Json body = request_;
    body.update(fields);
    auto response = server_.Post("/v1/chat/completions", body, headers);
    EXPECT_EQ(response.status, 200);
    return Json::parse(response.body)["id"].get<std::string>();
  };
  EXPECT_EQ(id_of({{"X-Request-Id", "my-id.1"}}), "chatcmpl-my-id.1");
  EXPECT_EQ(id_of({}, {{"request_id", "body-id"}}), "chatcmpl-body-id");
  EXPECT_EQ(id_of({{"X-Request-Id", "my-id"}}, {{"request_id", "body-id"}}), "chatcmpl-my-id");
  for (const std::string& bad : {std::string("a b"), std::string(1000, 'x'), std::string("a\"b")}) {
    EXPECT_EQ(id_of({{"X-Request-Id", bad}}).size(), std::string("chatcmpl-").size() + 16);
  }
}

TEST_F(ChatApiTest, SpecialTokensOfUsersStayText) {
  server_.Say("</think>x");
  const std::string user = "<\xEF\xBD\x9CUser\xEF\xBD\x9C>";
  Chat({{"messages", UserMessage(user)}});
  auto id = *testing::TinyTokenizer().FindAddedToken(user);
  const auto prompt = server_.engine().requests().back().prompt;
  EXPECT_EQ(std::count(prompt.begin(), prompt.end(), id), 1) << "only the role token itself";
}

}  // namespace
}  // namespace fulgur::server

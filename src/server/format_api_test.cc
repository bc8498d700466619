// Formats of answers through the API. The model here says any token that its format allows.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "server/testing/server_fixture.h"

namespace fulgur::server {
namespace {

using ::testing::HasSubstr;
using testing::Json;
using ::testing::MatchesRegex;
using testing::Script;
using testing::TestServer;
using testing::TinyTokenizer;
using testing::UserMessage;

// Speaks at random inside the format, ends as soon as it may.
void Ramble(sample::TokenConstraint& constraint, std::mt19937& rng, std::vector<int32_t>& said) {
  while (said.size() < 1500) {
    const auto allowed = constraint.Allowed();
    ASSERT_TRUE(allowed.ok()) << allowed.status();
    if (allowed->end) return;
    std::vector<int32_t> fitting;
    for (int32_t token = 0; token < TinyTokenizer().vocab_size(); ++token) {
      if (allowed->Has(token)) fitting.push_back(token);
    }
    ASSERT_FALSE(fitting.empty());
    said.push_back(fitting[rng() % fitting.size()]);
    constraint.Accept(said.back());
  }
}

class FormatApiTest : public ::testing::Test {
 protected:
  FormatApiTest() {
    server_.SayBy([this](const engine::Request& request) { return Answer(request); });
  }

  Script Answer(const engine::Request& request) {
    Script script;
    had_constraint_ = request.constraint != nullptr;
    if (!request.constraint) {
      script.tokens = TinyTokenizer().Encode("</think>free");
      return script;
    }
    was_active_ = request.constraint->active();
    if (!was_active_) script.tokens = TinyTokenizer().Encode("I think {[ and so on</think>");
    for (const int32_t token : script.tokens) request.constraint->Accept(token);
    Ramble(*request.constraint, rng_, script.tokens);
    return script;
  }

  std::string Content(Json fields) {
    Json body = {{"messages", UserMessage("hi")}, {"max_tokens", 1600}};
    body.update(fields);
    const auto response = server_.Chat(body);
    EXPECT_EQ(response.status, 200) << response.body;
    if (response.status != 200) return "";
    const Json choice = Json::parse(response.body)["choices"][0];
    EXPECT_EQ(choice["finish_reason"], "stop");
    return choice["message"]["content"].get<std::string>();
  }

  std::mt19937 rng_{7};
  bool had_constraint_ = false;
  bool was_active_ = false;
  TestServer server_{testing::TestOptions(), 4000};
};

const Json kPerson = Json::parse(R"({"type": "object", "additionalProperties": false,
  "properties": {"name": {"type": "string", "maxLength": 9}, "age": {"type": "integer"}},
  "required": ["name", "age"]})");
const Json kNoThinking = {{"chat_template_kwargs", {{"thinking", false}}}};

TEST_F(FormatApiTest, JsonSchemaBehindReasoningAndWithout) {
  const Json format = {{"type", "json_schema"},
                       {"json_schema", {{"name", "person"}, {"schema", kPerson}}}};
  for (int i = 0; i < 20; ++i) {
    Json fields = {{"response_format", format}};
    if (i % 2 == 1) fields.update(kNoThinking);
    const Json person = Json::parse(Content(fields));
    EXPECT_EQ(was_active_, i % 2 == 1);
    EXPECT_TRUE(person["name"].is_string());
    EXPECT_TRUE(person["age"].is_number_integer());
    EXPECT_EQ(person.size(), 2U);
  }
}

TEST_F(FormatApiTest, EveryKind) {
  for (int i = 0; i < 10; ++i) {
    EXPECT_TRUE(Json::parse(Content({{"response_format", {{"type", "json_object"}}}})).is_object());
    const std::string code = Content({{"structured_outputs", {{"regex", "[a-f]{2,4}-\\d{3}"}}}});
    EXPECT_THAT(code, MatchesRegex("[a-f]{2,4}-[0-9]{3}"));
    EXPECT_THAT((std::vector<std::string>{"yes", "no"}),
                ::testing::Contains(Content({{"guided_choice", {"yes", "no"}}})));
    const std::string sum =
        Content({{"structured_outputs", {{"grammar", "root ::= [1-9] (\"+\" [1-9])+"}}}});
    EXPECT_THAT(sum, MatchesRegex("[1-9](\\+[1-9])+"));
    EXPECT_TRUE(Json::parse(Content({{"guided_json", kPerson.dump()}})).is_object());
    Json compact = {{"json", kPerson}, {"disable_any_whitespace", true}};
    EXPECT_EQ(Content({{"structured_outputs", compact}}).find('\n'), std::string::npos);
  }
}

TEST_F(FormatApiTest, CompletionsAndSeveralChoices) {
  const auto response =
      server_.Post("/v1/completions",
                   {{"prompt", "x"}, {"n", 3}, {"max_tokens", 1600}, {"guided_regex", "[ab]{5}"}});
  ASSERT_EQ(response.status, 200) << response.body;
  const Json answer = Json::parse(response.body);
  for (const Json& choice : answer["choices"]) {
    const auto text = choice["text"].get<std::string>();
    EXPECT_THAT(text, MatchesRegex("[ab]{5}"));
  }
}

const Json kTools = Json::parse(R"([
  {"type": "function", "function": {"name": "weather", "strict": true, "parameters": {
     "type": "object", "required": ["city", "days"], "properties": {
       "city": {"type": "string", "maxLength": 8}, "days": {"type": "integer", "minimum": 1}}}}},
  {"type": "function", "function": {"name": "clock", "parameters": {"type": "object"}}}])");

TEST_F(FormatApiTest, TextAndFreeCallsHaveNoFormat) {
  EXPECT_EQ(Content({{"response_format", {{"type", "text"}}}}), "free");
  EXPECT_FALSE(had_constraint_);
  Json clock = Json::array({kTools[1]});
  EXPECT_EQ(Content({{"tools", clock}}), "free");
  EXPECT_FALSE(had_constraint_);
}

// Random tokens make calls that are valid throughout, behind reasoning and without.
TEST_F(FormatApiTest, ForcedCallsOfStrictToolsAreValid) {
  for (int i = 0; i < 20; ++i) {
    Json body = {{"messages", UserMessage("hi")},
                 {"max_tokens", 1600},
                 {"tools", kTools},
                 {"parallel_tool_calls", false},
                 {"tool_choice", {{"type", "function"}, {"function", {{"name", "weather"}}}}}};
    if (i % 2 == 1) body.update(kNoThinking);
    const auto response = server_.Chat(body);
    ASSERT_EQ(response.status, 200) << response.body;
    const Json choice = Json::parse(response.body)["choices"][0];
    const Json& calls = choice["message"]["tool_calls"];
    ASSERT_EQ(calls.size(), 1U) << response.body;
    ASSERT_EQ(calls[0]["function"]["name"], "weather");
    const Json arguments = Json::parse(calls[0]["function"]["arguments"].get<std::string>());
    ASSERT_TRUE(arguments.contains("city") && arguments.contains("days")) << response.body;
    EXPECT_TRUE(arguments["city"].is_string());
    EXPECT_GE(arguments["days"].get<int64_t>(), 1);
    EXPECT_EQ(arguments.size(), 2U);
  }
}

TEST_F(FormatApiTest, AForcedCallGoesBeforeAFormat) {
  Json body = {{"messages", UserMessage("hi")},
               {"max_tokens", 1600},
               {"tools", Json::array({kTools[0]})},
               {"tool_choice", "required"},
               {"response_format", {{"type", "json_object"}}}};
  body.update(kNoThinking);
  const auto response = server_.Chat(body);
  ASSERT_EQ(response.status, 200) << response.body;
  EXPECT_FALSE(Json::parse(response.body)["choices"][0]["message"]["tool_calls"].empty());
}

// When the thinking budget is used up, the request goes on as another one: its format starts at
// once.
TEST_F(FormatApiTest, StartsBehindReasoningThatWasCutShort) {
  server_.SayBy([this](const engine::Request& request) {
    Script script;
    was_active_ = request.constraint->active();
    if (was_active_) {
      Ramble(*request.constraint, rng_, script.tokens);
    } else {
      script.tokens = TinyTokenizer().Encode("thinking on and on and on");
    }
    return script;
  });
  const std::string content = Content({{"thinking_token_budget", 3}, {"guided_regex", "[ab]{5}"}});
  EXPECT_TRUE(was_active_);
  EXPECT_THAT(content, MatchesRegex("[ab]{5}"));
}

TEST_F(FormatApiTest, BadPatternsDisturbNobody) {
  for (const std::string& pattern :
       {std::string("ab**"), std::string("[a-"), std::string("("), std::string("(?<=x)y"),
        std::string("\\"), std::string(), std::string(100'000, 'a')}) {
    const auto response = server_.Chat(
        {{"messages", UserMessage("hi")}, {"structured_outputs", {{"regex", pattern}}}});
    EXPECT_EQ(response.status, 400) << pattern;
    EXPECT_THAT(response.body, HasSubstr("The requested format cannot be used"));
  }
  EXPECT_EQ(Content({{"response_format", {{"type", "text"}}}}), "free");
  EXPECT_TRUE(server_.IsFree());
}

TEST(FormatWithoutTokenizerTest, IsRefused) {
  TestServer server(testing::TestOptions(), 2000, false);
  const auto response = server.Post("/v1/completions", {{"prompt", {1, 2}}, {"guided_regex", "a"}});
  EXPECT_EQ(response.status, 400);
  EXPECT_THAT(response.body, HasSubstr("needs a tokenizer"));
}

}  // namespace
}  // namespace fulgur::server

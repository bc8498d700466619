// Every published refusal: status, type, field and the words that clients match on.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "server/testing/server_fixture.h"

namespace fulgur::server {
namespace {

using ::testing::HasSubstr;
using testing::Json;
using testing::TestServer;
using testing::UserMessage;

struct ErrorCase {
  std::string name;
  Json fields;  // merged into a valid request
  int status;
  std::string type;
  std::string param;  // "null": none
  std::string message;
};

void ExpectError(const testing::ClientResponse& response, const ErrorCase& expected) {
  SCOPED_TRACE(expected.name);
  ASSERT_EQ(response.status, expected.status) << response.body;
  EXPECT_EQ(response.Header("Content-Type"), "application/json");
  Json body = Json::parse(response.body, nullptr, false);
  ASSERT_FALSE(body.is_discarded()) << response.body;
  const Json& error = body["error"];
  EXPECT_EQ(error["code"], expected.status);
  EXPECT_EQ(error["type"], expected.type);
  Json param = expected.param == "null" ? Json() : Json(expected.param);
  EXPECT_EQ(error["param"], param);
  EXPECT_THAT(error["message"].get<std::string>(), HasSubstr(expected.message));
}

constexpr char kRule[] = "BadRequestError";
constexpr char kMalformed[] = "Bad Request";

const Json kTool = Json::parse(
    R"({"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}})");

// An assistant message that calls f.
Json Call(const std::string& id) {
  const Json function = {{"name", "f"}, {"arguments", "{}"}};
  return {{"role", "assistant"},
          {"content", nullptr},
          {"tool_calls", {{{"id", id}, {"type", "function"}, {"function", function}}}}};
}

std::vector<ErrorCase> SharedCases() {
  return {
      {"n 0", {{"n", 0}}, 400, kRule, "n", "n must be at least 1, got 0."},
      {"n huge", {{"n", 16385}}, 400, kRule, "n", "n must be at most 16384, got 16385."},
      {"n greedy",
       {{"n", 2}, {"temperature", 0}},
       400,
       kRule,
       "n",
       "n must be 1 when using greedy sampling, got 2."},
      {"temperature",
       {{"temperature", -1}},
       400,
       kRule,
       "temperature",
       "temperature must be non-negative, got -1.0. (parameter=temperature, value=-1.0)"},
      {"top_p 0", {{"top_p", 0}}, 400, kRule, "top_p", "top_p must be in (0, 1], got 0.0."},
      {"top_p 1.5", {{"top_p", 1.5}}, 400, kRule, "top_p", "top_p must be in (0, 1], got 1.5."},
      {"top_k",
       {{"top_k", -2}},
       400,
       kRule,
       "top_k",
       "top_k must be 0 (disable), or at least 1, got -2."},
      {"min_p", {{"min_p", 2}}, 400, kRule, "min_p", "min_p must be in [0, 1], got 2.0."},
      {"presence",
       {{"presence_penalty", 3}},
       400,
       kRule,
       "presence_penalty",
       "presence_penalty must be in [-2, 2], got 3.0."},
      {"frequency",
       {{"frequency_penalty", -2.5}},
       400,
       kRule,
       "frequency_penalty",
       "frequency_penalty must be in [-2, 2], got -2.5."},
      {"repetition",
       {{"repetition_penalty", 0}},
       400,
       kRule,
       "repetition_penalty",
       "repetition_penalty must be greater than zero, got 0.0."},
      {"max_tokens 0",
       {{"max_tokens", 0}},
       400,
       kRule,
       "max_tokens",
       "max_tokens must be at least 1, got 0."},
      {"max_tokens negative",
       {{"max_tokens", -5}},
       400,
       kRule,
       "max_tokens",
       "max_tokens must be at least 1, got -5."},
      {"min_tokens",
       {{"min_tokens", -1}},
       400,
       kRule,
       "min_tokens",
       "min_tokens must be greater than or equal to 0"},
      {"min over max",
       {{"min_tokens", 6}, {"max_tokens", 5}},
       400,
       kRule,
       "min_tokens",
       "min_tokens must be less than or equal to max_tokens=5"},
      {"stop",
       {{"stop", Json::array({""})}},
       400,
       kRule,
       "stop",
       "stop cannot contain an empty string."},
      {"stops", {{"stop", {"a", "b", "c", "d", "e"}}}, 400, kRule, "stop", "at most 4"},
      {"bias",
       {{"logit_bias", {{"999999", 1}}}},
       400,
       kRule,
       "logit_bias",
       "token_id(s) [999999] in logit_bias contain out-of-vocab token ids. Vocabulary size: 594"},
      {"stop ids", {{"stop_token_ids", {999999}}}, 400, kRule, "stop_token_ids", "out-of-vocab"},
      {"negative stop id",
       {{"stop_token_ids", {-1}}},
       400,
       kRule,
       "stop_token_ids",
       "out of vocabulary"},
      {"allowed ids",
       {{"allowed_token_ids", {999999}}},
       400,
       kRule,
       "allowed_token_ids",
       "out-of-vocab"},
      {"no allowed id",
       {{"allowed_token_ids", Json::array()}},
       400,
       kRule,
       "allowed_token_ids",
       "allowed_token_ids must not be empty"},
      {"schema missing",
       {{"response_format", {{"type", "json_schema"}}}},
       400,
       kRule,
       "response_format",
       "When response_format type is 'json_schema', the 'json_schema' field must be provided."},
      {"format type",
       {{"response_format", {{"type", "xml"}}}},
       400,
       kMalformed,
       "response_format.type",
       "json_schema"},
      {"two kinds",
       {{"structured_outputs", {{"json", {{"type", "object"}}}, {"regex", "a"}}}},
       400,
       kRule,
       "structured_outputs",
       "You can only use one kind of constraints"},
      {"format and structured",
       {{"response_format", {{"type", "json_object"}}}, {"structured_outputs", {{"regex", "a"}}}},
       400,
       kRule,
       "structured_outputs",
       "You can only use one kind of constraints"},
      {"structural tag",
       {{"structured_outputs", {{"structural_tag", "{}"}}}},
       400,
       kRule,
       "structured_outputs",
       "Structural tags are not supported"},
      {"no schema",
       {{"response_format", {{"type", "json_schema"}, {"json_schema", {{"name", "x"}}}}}},
       400,
       kMalformed,
       "response_format.json_schema.schema",
       "Field required"},
      {"schema that cannot be kept",
       {{"guided_json", {{"type", "integer"}, {"multipleOf", 3}}}},
       400,
       kRule,
       "response_format",
       "`multipleOf` cannot be kept"},
      {"regular expression",
       {{"structured_outputs", {{"regex", "ab**"}}}},
       400,
       kRule,
       "response_format",
       "wrong at byte 3: a repetition is repeated"},
      {"cache salt",
       {{"cache_salt", ""}},
       400,
       kRule,
       "cache_salt",
       "Parameter 'cache_salt' must be a non-empty string if provided."},
      {"cache salt path", {{"cache_salt", "a/b"}}, 400, kRule, "cache_salt", "cache_salt"},
      {"thinking budget",
       {{"thinking_token_budget", -2}},
       400,
       kRule,
       "thinking_token_budget",
       "`thinking_token_budget` must be a non-negative integer or -1 for unlimited."},
      {"beam search", {{"use_beam_search", true}}, 400, kRule, "use_beam_search", "Beam search"},
      {"unknown model",
       {{"model", "gpt-5"}},
       404,
       "NotFoundError",
       "model",
       "The model `gpt-5` does not exist. Valid aliases: dsv4, alias."},
      {"too many tokens",
       {{"max_tokens", 2001}},
       400,
       kRule,
       "max_tokens",
       "max_tokens=2001 cannot be greater than max_model_len=2000"},
      {"no room",
       {{"max_tokens", 1999}},
       400,
       kRule,
       "input_tokens",
       "maximum context length is 2000 tokens. However, you requested 1999 output tokens"},
      {"wrong type", {{"max_tokens", "many"}}, 400, kMalformed, "max_tokens", "max_tokens"},
      {"fraction", {{"max_tokens", 16.5}}, 400, kMalformed, "max_tokens", "max_tokens"},
      {"list", {{"temperature", Json::array({1})}}, 400, kMalformed, "temperature", "temperature"},
      {"not finite", {{"temperature", "NaN"}}, 400, kMalformed, "temperature", "temperature"},
      {"seed", {{"seed", 99999999999999999999.0}}, 400, kMalformed, "seed", "seed"},
      {"number for text", {{"model", 5}}, 400, kMalformed, "model", "model"},
      {"stream_interval", {{"stream_interval", 0}}, 400, kRule, "stream_interval", "at least 1"},
      {"speculative",
       {{"speculative", "fast"}},
       400,
       kMalformed,
       "speculative",
       "'off', 'auto' or"},
      {"speculative below 0", {{"speculative", -1}}, 400, kMalformed, "speculative", "from 0"},
      {"truncation",
       {{"truncate_prompt_tokens", 0}},
       400,
       kRule,
       "truncate_prompt_tokens",
       "truncate_prompt_tokens"},
      {"truncation too long",
       {{"truncate_prompt_tokens", 5000}},
       400,
       kRule,
       "truncate_prompt_tokens",
       "truncate_prompt_tokens"},
  };
}

std::vector<ErrorCase> ChatCases() {
  return {
      {"no messages", {{"messages", Json()}}, 400, kMalformed, "messages", "Field required"},
      {"empty messages", {{"messages", Json::array()}}, 400, kRule, "messages", "messages"},
      {"messages text", {{"messages", "hi"}}, 400, kMalformed, "messages", "valid list"},
      {"unknown role",
       {{"messages", {{{"role", "pirate"}, {"content", "x"}}}}},
       400,
       kRule,
       "messages",
       "Invalid role: pirate"},
      {"no role", {{"messages", {{{"content", "x"}}}}}, 400, kRule, "messages", "role"},
      {"no content",
       {{"messages", {{{"role", "user"}, {"contents", "x"}}}}},
       400,
       kRule,
       "messages",
       "`messages[0].content` is required: a text or a list of parts"},
      {"no content of a result",
       {{"messages", {{{"role", "user"}, {"content", "x"}}, {{"role", "tool"}}}}},
       400,
       kRule,
       "messages",
       "`messages[1].content` is required"},
      {"image",
       {{"messages",
         {{{"role", "user"},
           {"content", {{{"type", "image_url"}, {"image_url", {{"url", "http://x"}}}}}}}}}},
       400,
       kRule,
       "messages",
       "image_url"},
      {"top_logprobs alone",
       {{"top_logprobs", 2}},
       400,
       kRule,
       "top_logprobs",
       "when using `top_logprobs`, `logprobs` must be set to true."},
      {"top_logprobs 21",
       {{"logprobs", true}, {"top_logprobs", 21}},
       400,
       kRule,
       "top_logprobs",
       "Requested sample logprobs of 21, which is greater than max allowed: 20"},
      {"top_logprobs all",
       {{"logprobs", true}, {"top_logprobs", -1}},
       400,
       kRule,
       "top_logprobs",
       "max allowed: 20"},
      {"max_completion_tokens",
       {{"max_completion_tokens", 0}},
       400,
       kRule,
       "max_completion_tokens",
       "max_tokens must be at least 1, got 0."},
      {"max_completion_tokens too large",
       {{"max_completion_tokens", 5000}},
       400,
       kRule,
       "max_completion_tokens",
       "cannot be greater than max_model_len=2000"},
      {"effort",
       {{"reasoning_effort", "extreme"}},
       400,
       kMalformed,
       "reasoning_effort",
       "reasoning_effort"},
      {"both flags",
       {{"continue_final_message", true}, {"add_generation_prompt", true}},
       400,
       kRule,
       "continue_final_message",
       "Cannot set both `continue_final_message` and `add_generation_prompt` to True."},
      {"default flag",
       {{"continue_final_message", true}},
       400,
       kRule,
       "continue_final_message",
       "send \"add_generation_prompt\": false along."},
      {"continue a user",
       {{"continue_final_message", true}, {"add_generation_prompt", false}},
       400,
       kRule,
       "messages",
       ""},
      {"template",
       {{"chat_template", "{{ x }}"}},
       400,
       kRule,
       "chat_template",
       "--trust-request-chat-template"},
      {"template in kwargs",
       {{"chat_template_kwargs", {{"chat_template", "x"}}}},
       400,
       kRule,
       "chat_template_kwargs",
       "--trust-request-chat-template"},
      {"kwargs text",
       {{"chat_template_kwargs", "x"}},
       400,
       kMalformed,
       "chat_template_kwargs",
       "dictionary"},
      // Tools.
      {"no tools",
       {{"tools", Json::array()}},
       400,
       kRule,
       "tools",
       "`tools` must not be an empty array"},
      {"choice without tools",
       {{"tool_choice", "auto"}},
       400,
       kRule,
       "tool_choice",
       "When using `tool_choice`, `tools` must be set."},
      {"choice text",
       {{"tools", {kTool}}, {"tool_choice", "maybe"}},
       400,
       kRule,
       "tool_choice",
       "Invalid value for `tool_choice`: maybe! Only named tools, \"none\", \"auto\" or "
       "\"required\" are supported."},
      {"choice number",
       {{"tools", {kTool}}, {"tool_choice", 3}},
       400,
       kRule,
       "tool_choice",
       "Invalid value for `tool_choice`: 3!"},
      {"unknown tool",
       {{"tools", {kTool}}, {"tool_choice", {{"type", "function"}, {"function", {{"name", "g"}}}}}},
       400,
       kRule,
       "tool_choice",
       "The tool specified in `tool_choice` does not match any of the specified `tools`"},
      {"no function",
       {{"tools", {kTool}}, {"tool_choice", {{"type", "function"}}}},
       400,
       kRule,
       "tool_choice",
       "\"function\": {\"name\": \"my_function\"}"},
      {"no name",
       {{"tools", {kTool}}, {"tool_choice", {{"type", "function"}, {"function", Json::object()}}}},
       400,
       kRule,
       "tool_choice",
       "\"function\": {\"name\": \"my_function\"}"},
      {"empty name",
       {{"tools", {kTool}}, {"tool_choice", {{"type", "function"}, {"function", {{"name", ""}}}}}},
       400,
       kRule,
       "tool_choice",
       "\"function\": {\"name\": \"my_function\"}"},
      {"tools object", {{"tools", kTool}}, 400, kMalformed, "tools", "valid list"},
      {"tool without name",
       {{"tools", {{{"type", "function"}}}}},
       400,
       kMalformed,
       "tools",
       "name"},
  };
}

std::vector<ErrorCase> CompletionCases() {
  constexpr char kNoPrompt[] = "Either prompt or prompt_embeds must be provided and non-empty.";
  return {
      {"no prompt", {{"prompt", Json()}}, 400, kRule, "prompt", kNoPrompt},
      {"empty prompt", {{"prompt", ""}}, 400, kRule, "prompt", kNoPrompt},
      {"empty list", {{"prompt", Json::array()}}, 400, kRule, "prompt", kNoPrompt},
      {"empty inner list", {{"prompt", {Json::array()}}}, 400, kRule, "prompt", kNoPrompt},
      {"one empty text", {{"prompt", {"a", ""}}}, 400, kRule, "prompt", kNoPrompt},
      {"object", {{"prompt", Json::object()}}, 400, kMalformed, "prompt", "prompt"},
      {"mixed", {{"prompt", {1, "a"}}}, 400, kMalformed, "prompt", "prompt"},
      {"mixed lists", {{"prompt", {Json::array({1}), 2}}}, 400, kMalformed, "prompt", "prompt"},
      {"negative id", {{"prompt", {-1}}}, 400, kRule, "prompt", "Token id -1 is out of vocabulary"},
      {"id outside",
       {{"prompt", {594}}},
       400,
       kRule,
       "prompt",
       "Token id 594 is out of vocabulary"},
      {"id outside in second",
       {{"prompt", {Json::array({5}), Json::array({5, 2147483647})}}},
       400,
       kRule,
       "prompt",
       "Token id 2147483647 is out of vocabulary"},
      {"too many choices",
       {{"prompt", std::vector<std::string>(129, "x")}, {"n", 128}},
       400,
       kRule,
       "n",
       "129 prompts with n=128 make 16512 choices; one request may ask for 16384."},
      {"logprobs", {{"logprobs", -1}}, 400, kRule, "logprobs", "non-negative"},
      {"logprobs 21", {{"logprobs", 21}}, 400, kRule, "logprobs", "max allowed: 20"},
      {"max_tokens 0 without echo",
       {{"max_tokens", 0}},
       400,
       kRule,
       "max_tokens",
       "max_tokens must be at least 1, got 0."},
      {"suffix with ids", {{"prompt", {5}}, {"suffix", "x"}}, 400, kRule, "suffix", "text"},
      {"suffix with echo", {{"echo", true}, {"suffix", "x"}}, 400, kRule, "suffix", "echo"},
  };
}

class ApiErrorsTest : public ::testing::Test {
 protected:
  void Check(const std::string& path, const Json& valid, const std::vector<ErrorCase>& cases) {
    for (const ErrorCase& expected : cases) {
      for (bool stream : {false, true}) {
        Json body = valid;
        body.update(expected.fields);
        body["stream"] = stream;
        ExpectError(server_.Post(path, body), expected);
      }
    }
    EXPECT_TRUE(server_.engine().requests().empty()) << "a refused request reached the engine";
    server_.Say("still here");
    EXPECT_EQ(server_.Post(path, valid).status, 200);
    EXPECT_TRUE(server_.IsFree());
  }

  TestServer server_;
  const Json chat_ = {{"messages", UserMessage("Hi")}};
  const Json completion_ = {{"prompt", "Hi there"}};
};

TEST_F(ApiErrorsTest, ChatAndCompletionShareTheirRules) {
  Check("/v1/chat/completions", chat_, SharedCases());
}
TEST_F(ApiErrorsTest, CompletionSharesThem) {
  Check("/v1/completions", completion_, SharedCases());
}
TEST_F(ApiErrorsTest, Chat) { Check("/v1/chat/completions", chat_, ChatCases()); }
TEST_F(ApiErrorsTest, Completions) { Check("/v1/completions", completion_, CompletionCases()); }

TEST_F(ApiErrorsTest, StreamRules) {
  Json body = chat_;
  body["stream_options"] = {{"include_usage", true}};
  ExpectError(server_.Chat(body), {"options",
                                   {},
                                   400,
                                   kRule,
                                   "stream_options",
                                   "Stream options can only be defined when `stream=True`."});
  body = chat_;
  body["prompt_logprobs"] = 1;
  body["stream"] = true;
  ExpectError(server_.Chat(body), {"prompt_logprobs",
                                   {},
                                   400,
                                   kRule,
                                   "prompt_logprobs",
                                   "`prompt_logprobs` are not available when `stream=True`."});
  body["prompt_logprobs"] = -1;
  body["stream"] = false;
  ExpectError(server_.Chat(body),
              {"all", {}, 400, kRule, "prompt_logprobs", "Requested prompt logprobs"});
}

TEST_F(ApiErrorsTest, PromptsAtTheLimit) {
  TestServer server(testing::TestOptions(), 64);
  server.Say("x");
  std::vector<int32_t> ids(63, 5);
  EXPECT_EQ(server.Post("/v1/completions", {{"prompt", ids}, {"max_tokens", 1}}).status, 200);
  ids.push_back(5);
  ExpectError(server.Post("/v1/completions", {{"prompt", ids}, {"max_tokens", 1}}),
              {"one more",
               {},
               400,
               kRule,
               "input_tokens",
               "maximum context length is 64 tokens. However, you requested 1 output tokens and "
               "your prompt contains 64 input tokens, for a total of 65 tokens. Please reduce"});
  // A chat without max_tokens: the room left is the limit, and there must be some.
  std::string text;
  for (int i = 0; i < 60; ++i) text += "\xE2\x82\xAC";  // three tokens each
  ExpectError(server.Chat({{"messages", UserMessage(text)}}),
              {"chat",
               {},
               400,
               kRule,
               "input_tokens",
               "maximum context length is 64 tokens. However, your prompt contains 184 input "
               "tokens, which exceeds this limit even without any output tokens."});
  // So long a text cannot fit whatever its tokens are: it is not tokenised at all.
  const Json endless = {{"messages", UserMessage(std::string(1 << 20, 'x'))}};
  ExpectError(server.Chat(endless),
              {"long",
               {},
               400,
               kRule,
               "input_text",
               "maximum context length is 64 tokens. However, your prompt contains 1048576 bytes "
               "of text, which make at least"});
  Json body = endless;
  body["max_tokens"] = 60;
  ExpectError(server.Chat(body),
              {"long and output",
               {},
               400,
               kRule,
               "input_text",
               "However, you requested 60 output tokens, which leave 4 tokens, and your prompt"});
  body["max_tokens"] = 64;
  ExpectError(server.Chat(body),
              {"output alone",
               {},
               400,
               kRule,
               "input_text",
               "However, you requested 64 output tokens, which leave no room for a prompt, and"});
}

// What a lenient server takes, on purpose, because clients send it.
TEST_F(ApiErrorsTest, UnusualRequestsThatAreFine) {
  server_.Say("ok");
  for (const Json& fields :
       std::vector<Json>{{{"max_tokens", true}},  // 1, as for every number
                         {{"best_of", 3}},        // an unknown field
                         {{"messages", {{{"role", "tool"}, {"content", "42"}}}}},
                         {{"messages", {{{"role", "user"}, {"content", nullptr}}}}},
                         {{"messages", {{{"role", "assistant"}, {"reasoning", "Hm."}}}}},
                         {{"messages",
                           {{{"role", "user"}, {"content", "x"}},
                            {{"role", "assistant"}, {"content", ""}},
                            {{"role", "user"}, {"content", "y"}}}}}}) {
    Json body = chat_;
    body.update(fields);
    auto response = server_.Chat(body);
    EXPECT_EQ(response.status, 200) << fields << response.body;
  }
  // Results apart from their calls: a developer message between, in turns, of an unknown call.
  const Json call_a = Call("a"), call_b = Call("b");
  const Json result_a = {{"role", "tool"}, {"tool_call_id", "a"}, {"content", "A"}};
  const Json result_b = {{"role", "tool"}, {"tool_call_id", "b"}, {"content", "B"}};
  const Json developer = {{"role", "developer"}, {"content", "Be brief."}};
  const Json both = {{"role", "assistant"},
                     {"content", nullptr},
                     {"tool_calls", {call_a["tool_calls"][0], call_b["tool_calls"][0]}}};
  for (const Json& later : std::vector<Json>{{call_a, developer, result_a},
                                             {call_a, result_a, call_b, result_b},
                                             {both, result_b, result_a},
                                             {call_a, result_b}}) {
    Json body = chat_;
    for (const Json& message : later) body["messages"].push_back(message);
    EXPECT_EQ(server_.Chat(body).status, 200) << later;
  }
  Json body = chat_;
  body["max_tokens"] = true;
  EXPECT_EQ(Json::parse(server_.Chat(body).body)["usage"]["completion_tokens"], 1);
}

TEST_F(ApiErrorsTest, ToolFlags) {
  ServerOptions options = testing::TestOptions();
  options.chat.auto_tool_choice = false;
  options.chat.tool_parser = false;
  TestServer server(options);
  Json body = chat_;
  body["tools"] = Json::array({kTool});
  ExpectError(server.Chat(body),
              {"auto",
               {},
               400,
               kRule,
               "tool_choice",
               "\"auto\" tool choice requires --enable-auto-tool-choice and --tool-call-parser to "
               "be set"});
  body["tool_choice"] = "required";
  ExpectError(server.Chat(body),
              {"required",
               {},
               400,
               kRule,
               "tool_choice",
               "tool_choice=\"required\" requires --tool-call-parser to be set"});
  body["tool_choice"] = {{"type", "function"}, {"function", {{"name", "f"}}}};
  ExpectError(server.Chat(body),
              {"named", {}, 400, kRule, "tool_choice", "requires --tool-call-parser to be set"});
  body["tool_choice"] = "none";
  server.Say("fine");
  EXPECT_EQ(server.Chat(body).status, 200);
}

TEST_F(ApiErrorsTest, BodiesThatAreNoRequest) {
  for (const char* path : {"/v1/chat/completions", "/v1/completions", "/tokenize", "/detokenize"}) {
    for (const auto& [body, message] : std::vector<std::pair<std::string, std::string>>{
             {"{",
              "line 1, column 2 (byte 1): a member's name in double quotes was expected; the "
              "text ends here"},
             {"[]", "the body must be a JSON object"},
             {"\"x\"", "the body must be a JSON object"},
             {"{\"a\":\"\xff\"}", "not valid UTF-8 at byte 6"},
             {"{\"a\":\"\\ud800\"}", "half of a surrogate pair, which is no character"},
             {"{\n \"a\": bad}",
              "The body is not valid JSON at line 2, column 7 (byte 8): a value "
              "was expected"},
             {"{bad", "column 2 (byte 1): a member's name in double quotes was expected"},
             {"{\"a\": 1,}", "column 9 (byte 8): a member's name in double quotes was expected"},
             {"{\"a\":" + std::string(500, '['), "nested deeper than 128 levels"},
             {"{\"a\":" + std::string(500, '[') + std::string(500, ']') + "}",
              "nests deeper than 128 levels"},
             {"nope", "the body must be a JSON object"}}) {
      ExpectError(server_.Connect().Post(path, body),
                  {path + body, {}, 400, kMalformed, "null", message});
    }
    for (const char* type : {"text/plain", "application/jsonx", "multipart/form-data"}) {
      ExpectError(server_.Connect().Post(path, "{}", {{"Content-Type", type}}),
                  {type,
                   {},
                   400,
                   kMalformed,
                   "null",
                   "Unsupported Media Type: Only 'application/json' is allowed"});
    }
  }
  server_.Say("ok");
  auto response = server_.Connect().Post("/v1/chat/completions", chat_.dump(),
                                         {{"Content-Type", "Application/JSON; charset=utf-8"}});
  EXPECT_EQ(response.status, 200) << response.body;
}

TEST_F(ApiErrorsTest, PathsAndMethods) {
  for (const char* path : {"/", "/v1", "/v2/models", "/nope", "//health", "/../../etc/passwd",
                           "/%2e%2e/%2e%2e/etc/passwd"}) {
    ExpectError(server_.Get(path), {path,
                                    {},
                                    404,
                                    "Not Found",
                                    "null",
                                    "requests go to /v1/chat/completions or /v1/completions."});
  }
  // What a client sends is shown only in a form that fits into JSON and into a log line.
  ExpectError(server_.Get("/%ff%0a%22x"),
              {"bytes", {}, 404, "Not Found", "null", "no path /\\xff\\x0a\\x22x; requests go to"});
  for (const auto& [path, near] : std::vector<std::pair<std::string, std::string>>{
           {"/v1/chat/completions/", "/v1/chat/completions"},
           {"/completions", "/v1/completions"},
           {"/health/", "/health"}}) {
    ExpectError(server_.Get(path),
                {path,
                 {},
                 404,
                 "Not Found",
                 "null",
                 "this server has no path " + path + "; perhaps you mean " + near + "."});
  }
  for (const char* model : {"nope", "a/b", "dsv4/x"}) {
    ExpectError(
        server_.Get(std::string("/v1/models/") + model),
        {model,
         {},
         404,
         "NotFoundError",
         "model",
         "The model `" + std::string(model) + "` does not exist. Valid aliases: dsv4, alias."});
  }
  ExpectError(server_.Get("/v1/models/"),
              {"no model", {}, 404, "NotFoundError", "model", "needs the name of a model"});
  for (const char* method : {"GET", "PUT", "DELETE", "PATCH", "BREW"}) {
    auto client = server_.Connect();
    client.Send(testing::HttpClient::RequestText(method, "/v1/chat/completions"));
    auto response = client.Read();
    ExpectError(response, {method,
                           {},
                           405,
                           "Method Not Allowed",
                           "null",
                           "/v1/chat/completions takes POST, not " + std::string(method)});
    EXPECT_EQ(response.Header("Allow"), "POST");
  }
  EXPECT_EQ(server_.Connect().Post("/health", "{}").status, 405);
}

TEST_F(ApiErrorsTest, EngineFaults) {
  server_.Say("half an answer", engine::FinishReason::kError);
  ExpectError(server_.Chat(chat_),
              {"whole", {}, 500, "InternalServerError", "null", "The model has failed."});
  Json body = chat_;
  body["stream"] = true;
  auto response = server_.Chat(body);
  EXPECT_EQ(response.status, 200);
  EXPECT_TRUE(response.complete);
  bool done = false;
  auto events = testing::Events(response.body, &done);
  EXPECT_TRUE(done);
  ASSERT_FALSE(events.empty());
  EXPECT_EQ(Json::parse(events.back())["error"]["type"], "InternalServerError");
  EXPECT_EQ(Json::parse(events.back())["error"]["code"], 500);
  EXPECT_TRUE(server_.IsFree());
  EXPECT_EQ(server_.Get("/health").status, 200);
}

TEST_F(ApiErrorsTest, DeadEngine) {
  server_.engine().SetPace(std::chrono::milliseconds(20));
  server_.Say("a long answer that is cut short by the death of the engine");
  auto client = server_.Connect();
  Json body = chat_;
  client.Send(testing::HttpClient::RequestText("POST", "/v1/chat/completions", body.dump()));
  ASSERT_TRUE(testing::WaitFor([&] { return server_.engine().num_active() == 1; }));
  server_.engine().Die();
  ExpectError(client.Read(), {"running", {}, 500, "InternalServerError", "null", ""});
  ExpectError(server_.Chat(chat_), {"new",
                                    {},
                                    500,
                                    "InternalServerError",
                                    "null",
                                    "The server had an error while processing your request."});
  EXPECT_EQ(server_.Get("/health").status, 503);
  EXPECT_EQ(server_.Get("/ping").status, 503);
  EXPECT_EQ(server_.Get("/metrics").status, 200);
}

TEST_F(ApiErrorsTest, FullQueue) {
  ServerOptions options = testing::TestOptions();
  options.max_num_queued_reqs = 3;
  TestServer server(options);
  server.Say("ok");
  server.engine().SetNumWaiting(2);
  EXPECT_EQ(server.Chat(chat_).status, 200);
  server.engine().SetNumWaiting(3);
  auto response = server.Chat(chat_);
  ExpectError(response, {"full", {}, 503, "Service Unavailable", "null", "queue is full"});
  EXPECT_EQ(response.Header("Retry-After"), "1");
  EXPECT_THAT(server.Get("/metrics").body,
              HasSubstr("vllm:admission_rejections_total{model_name=\"dsv4\",reason=\"max_num_"
                        "queued_reqs\"} 1.0"));
}

TEST_F(ApiErrorsTest, FullQueueOfTokens) {
  ServerOptions options = testing::TestOptions();
  options.max_num_queued_tokens = 100;
  TestServer server(options);
  server.Say("ok");
  Json body = {{"prompt", std::vector<int>(60, 5)}};
  EXPECT_EQ(server.Post("/v1/completions", body).status, 200);
  server.engine().SetNumWaiting(1);  // with 50 tokens
  ExpectError(server.Post("/v1/completions", body),
              {"full", {}, 503, "Service Unavailable", "null", "queue is full"});
  body["prompt"] = std::vector<int>(50, 5);
  EXPECT_EQ(server.Post("/v1/completions", body).status, 200);
}

TEST_F(ApiErrorsTest, DataParallelRank) {
  server_.Say("ok");
  for (const char* fine : {"0", "x", ""}) {
    EXPECT_EQ(server_.Post("/v1/chat/completions", chat_, {{"X-data-parallel-rank", fine}}).status,
              200);
  }
  EXPECT_EQ(server_.Post("/v1/chat/completions", chat_, {{"X-data-parallel-rank", "1"}}).status,
            400);
  EXPECT_EQ(server_.Post("/v1/chat/completions", chat_, {{"X-data-parallel-rank", "-1"}}).status,
            400);
}

}  // namespace
}  // namespace fulgur::server

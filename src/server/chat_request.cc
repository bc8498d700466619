#include "server/chat_request.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/status_macros.h"
#include "server/api_error.h"
#include "text/chat_encoding.h"
#include "text/chat_request.h"
#include "text/json.h"

namespace fulgur::server {
namespace {

using text::JsonValue;

// What of a chat request decides prompt and parsing.
struct ChatFields {
  std::vector<text::ChatMessage> messages;
  text::ChatOptions render;
  std::string named_tool;
  ToolChoice tool_choice = ToolChoice::kNone;
  bool parallel_tool_calls = true;
  bool has_strict_tool = false;
  bool include_reasoning = true;
  bool has_thinking_budget = false;
};

absl::Status AsRuleError(const absl::Status& status, std::string_view param) {
  if (status.ok()) return status;
  return RuleError(std::string(status.message()), param);
}

std::string RawText(const RequestFields& fields, std::string_view name) {
  return std::string(fields.Raw(name).value_or(""));
}

// ---- tools ----

absl::StatusOr<std::string> ReadToolName(const RequestFields& fields) {
  constexpr std::string_view kForm =
      "use `{\"type\": \"function\", \"function\": {\"name\": \"my_function\"}}`";
  ASSIGN_OR_RETURN(RequestFields choice, fields.Object("tool_choice"));
  if (!choice.Has("function") || choice.Raw("function")->front() != '{') {
    return RuleError(fmt::format("Expected field `function` in `tool_choice`: {}.", kForm),
                     "tool_choice");
  }
  ASSIGN_OR_RETURN(RequestFields function, choice.Object("function"));
  std::string name;
  RETURN_IF_ERROR(function.Read("name", &name));
  if (name.empty()) {
    return RuleError(
        fmt::format("Expected field `name` in `function` in `tool_choice`: {}.", kForm),
        "tool_choice");
  }
  return name;
}

absl::StatusOr<ToolChoice> ReadToolChoice(const RequestFields& fields, bool has_tools,
                                          std::string* named_tool) {
  if (!fields.Has("tool_choice")) return has_tools ? ToolChoice::kAuto : ToolChoice::kNone;
  std::string_view raw = *fields.Raw("tool_choice");
  std::string text;
  if (raw.front() == '"') RETURN_IF_ERROR(fields.Read("tool_choice", &text));
  if (text == "none") return ToolChoice::kNone;
  if (!has_tools) {
    return RuleError("When using `tool_choice`, `tools` must be set.", "tool_choice");
  }
  if (raw.front() == '{') {
    ASSIGN_OR_RETURN(*named_tool, ReadToolName(fields));
    return ToolChoice::kNamed;
  }
  if (text == "auto") return ToolChoice::kAuto;
  if (text == "required") return ToolChoice::kRequired;
  return RuleError(fmt::format("Invalid value for `tool_choice`: {}! Only named tools, \"none\", "
                               "\"auto\" or \"required\" are supported.",
                               raw.front() == '"' ? std::string_view(text) : raw),
                   "tool_choice");
}

// The tools as they will be rendered and parsed; checked to be a list of functions.
absl::Status ReadTools(const RequestFields& fields, ChatFields* chat) {
  auto raw = fields.Raw("tools");
  if (!raw) return absl::OkStatus();
  ASSIGN_OR_RETURN(JsonValue tools, text::ParseJson(*raw));
  if (!tools.is_array()) {
    return MalformedError("tools: Input should be a valid list.", "tools");
  }
  if (tools.items().empty()) {
    return RuleError(
        "`tools` must not be an empty array. Either provide at least one tool or omit "
        "the field entirely.",
        "tools");
  }
  bool named_exists = false;
  for (const JsonValue& tool : tools.items()) {
    const JsonValue* type = tool.Find("type");
    const JsonValue* function = tool.Find("function");
    const JsonValue* name = function == nullptr ? nullptr : function->Find("name");
    if (type != nullptr && type->is_string() && type->string() != "function") {
      return MalformedError(
          fmt::format("tools: type '{}' is not supported, only 'function' is.", type->string()),
          "tools");
    }
    if (name == nullptr || !name->is_string()) {
      return MalformedError("tools: every tool needs a `function` object with a `name`.", "tools");
    }
    named_exists |= name->string() == chat->named_tool;
    chat->has_strict_tool |= grammar::IsStrict(*function);
  }
  if (chat->tool_choice == ToolChoice::kNamed && !named_exists) {
    return RuleError(
        "The tool specified in `tool_choice` does not match any of the specified "
        "`tools`",
        "tool_choice");
  }
  chat->render.tools = std::string(*raw);
  return absl::OkStatus();
}

absl::Status CheckToolFlags(const ChatOptions& options, const ChatFields& chat) {
  if (chat.tool_choice == ToolChoice::kNone || options.tool_parser) {
    bool allowed = chat.tool_choice != ToolChoice::kAuto || options.auto_tool_choice;
    if (allowed) return absl::OkStatus();
  }
  if (chat.tool_choice == ToolChoice::kAuto) {
    return RuleError(
        "\"auto\" tool choice requires --enable-auto-tool-choice and "
        "--tool-call-parser to be set",
        "tool_choice");
  }
  const std::string choice = chat.tool_choice == ToolChoice::kNamed ? chat.named_tool : "required";
  return RuleError(fmt::format("tool_choice=\"{}\" requires --tool-call-parser to be set", choice),
                   "tool_choice");
}

// ---- prompt ----

absl::Status ReadPromptFlags(const RequestFields& fields, const ChatOptions& options,
                             ChatFields* chat) {
  text::ChatOptions& render = chat->render;
  RETURN_IF_ERROR(fields.Read("continue_final_message", &render.continue_final_message));
  bool add_given = fields.Has("add_generation_prompt");
  RETURN_IF_ERROR(fields.Read("add_generation_prompt", &render.add_generation_prompt));
  if (render.continue_final_message && render.add_generation_prompt) {
    return RuleError(
        fmt::format("Cannot set both `continue_final_message` and `add_generation_prompt` to "
                    "True.{}",
                    add_given ? ""
                              : " `add_generation_prompt` is true unless the request says "
                                "otherwise: send \"add_generation_prompt\": false along."),
        "continue_final_message");
  }
  bool adds_bos = false;
  RETURN_IF_ERROR(fields.Read("add_special_tokens", &adds_bos));
  if (!options.trust_request_chat_template && fields.Has("chat_template")) {
    return RuleError(
        "Chat template is passed with request, but --trust-request-chat-template is "
        "not set. Refused request with untrusted chat template.",
        "chat_template");
  }
  return absl::OkStatus();
}

absl::Status ReadThinking(const RequestFields& fields, const ChatOptions& options,
                          ChatFields* chat) {
  text::ThinkingRequest thinking;
  RETURN_IF_ERROR(fields.Read("reasoning_effort", &thinking.reasoning_effort));
  if (thinking.reasoning_effort) {
    auto mapped = options.effort_map.find(*thinking.reasoning_effort);
    if (mapped != options.effort_map.end()) thinking.reasoning_effort = mapped->second;
  }
  ASSIGN_OR_RETURN(RequestFields object, fields.Object("thinking"));
  RETURN_IF_ERROR(object.Read("type", &thinking.thinking_type));
  ASSIGN_OR_RETURN(RequestFields kwargs, fields.Object("chat_template_kwargs"));
  if (!options.trust_request_chat_template && kwargs.Has("chat_template")) {
    return RuleError(
        "Chat template is passed with request, but --trust-request-chat-template is "
        "not set. Refused request with untrusted chat template.",
        "chat_template_kwargs");
  }
  thinking.template_kwargs = RawText(fields, "chat_template_kwargs");
  thinking.default_template_kwargs = options.default_template_kwargs;
  auto choice = text::ResolveThinking(thinking, text::ThinkingDefaults::kCurrent);
  if (!choice.ok()) {
    return MalformedError(std::string(choice.status().message()), "reasoning_effort");
  }
  chat->render.thinking = choice->thinking;
  chat->render.effort = choice->effort;
  chat->render.drop_thinking = choice->drop_thinking;
  return absl::OkStatus();
}

absl::Status ReadMessages(const RequestFields& fields, ChatFields* chat) {
  auto raw = fields.Raw("messages");
  if (!raw) return MalformedError("messages: Field required.", "messages");
  if (raw->front() != '[') {
    return MalformedError("messages: Input should be a valid list.", "messages");
  }
  auto messages = text::ParseMessages(*raw);
  if (!messages.ok()) return AsRuleError(messages.status(), "messages");
  if (messages->empty()) return RuleError("`messages` must not be empty.", "messages");
  chat->messages = *std::move(messages);
  return absl::OkStatus();
}

// DeepSeek's own API marks a last assistant message to be continued with `prefix`.
absl::Status ReadPrefixMark(const RequestFields& fields, ChatFields* chat) {
  std::string_view raw = *fields.Raw("messages");
  if (raw.find("\"prefix\"") == std::string_view::npos) return absl::OkStatus();
  ASSIGN_OR_RETURN(JsonValue messages, text::ParseJson(raw));
  const JsonValue* prefix = messages.items().back().Find("prefix");
  if (prefix == nullptr || prefix->type() != JsonValue::Type::kBoolean || !prefix->boolean() ||
      chat->messages.back().role != text::Role::kAssistant) {
    return absl::OkStatus();
  }
  chat->render.continue_final_message = true;
  chat->render.add_generation_prompt = false;
  return absl::OkStatus();
}

absl::StatusOr<ChatFields> ReadChatFields(const RequestFields& fields, const ChatOptions& options) {
  ChatFields chat;
  RETURN_IF_ERROR(ReadMessages(fields, &chat));
  RETURN_IF_ERROR(ReadPromptFlags(fields, options, &chat));
  RETURN_IF_ERROR(ReadPrefixMark(fields, &chat));
  RETURN_IF_ERROR(ReadThinking(fields, options, &chat));
  RETURN_IF_ERROR(fields.Read("parallel_tool_calls", &chat.parallel_tool_calls));
  RETURN_IF_ERROR(fields.Read("include_reasoning", &chat.include_reasoning));
  bool has_tools = fields.Has("tools");
  if (has_tools && *fields.Raw("tools") == "[]") has_tools = true;  // reported by ReadTools
  ASSIGN_OR_RETURN(chat.tool_choice, ReadToolChoice(fields, has_tools, &chat.named_tool));
  RETURN_IF_ERROR(ReadTools(fields, &chat));
  chat.render.effort_profile = options.effort_profile;
  chat.render.empty_reasoning_as_chat = options.empty_reasoning_as_chat;
  if (chat.tool_choice == ToolChoice::kNone && options.exclude_tools_when_none) {
    chat.render.tools.clear();
  }
  return chat;
}

bool IsForced(ToolChoice choice) {
  return choice == ToolChoice::kRequired || choice == ToolChoice::kNamed;
}

// The opening of a block of tool calls, as the model would write it after its reasoning.
std::string ForcedCallText(const std::string& tool) {
  std::string_view marker = text::MarkerText(text::Marker::kDsml);
  std::string opening = fmt::format("\n\n<{}tool_calls>\n", marker);
  if (!tool.empty()) opening += fmt::format("<{}invoke name=\"{}\">\n", marker, tool);
  return opening;
}

absl::Status ForceCall(const ServingContext& context, const std::string& tool, ChatFields* chat,
                       Job* job) {
  if (!chat->render.thinking) {
    chat->render.forced_tool = tool;
    return absl::OkStatus();
  }
  job->forced_call_tokens = context.tokenizer->Encode(ForcedCallText(tool));
  return absl::OkStatus();
}

text::OutputParserOptions ParserFor(const ChatOptions& options, const ChatFields& chat,
                                    text::OutputStart start) {
  text::OutputParserOptions parser;
  parser.start = start;
  parser.parse_reasoning = options.reasoning_parser;
  parser.parse_tools = chat.tool_choice != ToolChoice::kNone && options.tool_parser;
  parser.parallel_tool_calls = chat.parallel_tool_calls;
  parser.forced_tool = chat.named_tool;
  // Without a parser the closing tag and what precedes it are plain content.
  if (!options.reasoning_parser && start == text::OutputStart::kReasoning) {
    parser.start = text::OutputStart::kContent;
  }
  return parser;
}

std::string LastUserText(const std::vector<text::ChatMessage>& messages) {
  for (auto message = messages.rbegin(); message != messages.rend(); ++message) {
    if (message->role == text::Role::kUser) return message->content;
  }
  return "";
}

struct EncodedChat {
  JobPrompt prompt;
  text::OutputStart start;
};

absl::StatusOr<EncodedChat> Encode(const ServingContext& context, ChatFields& chat, size_t limit) {
  auto rendered = text::RenderChat(std::move(chat.messages), chat.render);
  if (!rendered.ok()) return AsRuleError(rendered.status(), "messages");
  text::PromptEncodeOptions options;
  options.client_special_tokens = context.options->chat.special_tokens_in_text;
  options.max_tokens = limit;
  EncodedChat encoded;
  encoded.start = rendered->start;
  encoded.prompt.tokens = text::EncodePrompt(*context.tokenizer, *rendered, options);
  encoded.prompt.text = std::move(rendered->text);
  return encoded;
}

absl::Status ReadLogprobs(const RequestFields& fields, GenerationRequest* request) {
  bool wanted = false;
  int64_t top = 0;
  RETURN_IF_ERROR(fields.Read("logprobs", &wanted));
  RETURN_IF_ERROR(fields.Read("top_logprobs", &top));
  if (!wanted && top != 0) {
    return RuleError("when using `top_logprobs`, `logprobs` must be set to true.", "top_logprobs");
  }
  if (wanted) request->logprobs = top;
  return absl::OkStatus();
}

absl::Status ReadMaxTokens(const RequestFields& fields, GenerationRequest* request) {
  if (!fields.Has("max_completion_tokens")) return absl::OkStatus();
  request->max_tokens_param = "max_completion_tokens";
  return fields.Read("max_completion_tokens", &request->max_tokens);
}

absl::Status NeedTokenizer(const ServingContext& context) {
  if (context.tokenizer != nullptr) return absl::OkStatus();
  return RuleError(
      "This server runs without a tokenizer (--skip-tokenizer-init): send token ids to "
      "/v1/completions.");
}

size_t MessageBytes(const std::vector<text::ChatMessage>& messages) {
  size_t bytes = 0;
  for (const auto& message : messages) bytes += message.content.size();
  return bytes;
}

absl::Status CheckThinkingBudget(const ServingContext& context, Job* job) {
  if (job->request.thinking_token_budget.value_or(-1) < 0) return absl::OkStatus();
  auto close = context.tokenizer->FindAddedToken(text::MarkerText(text::Marker::kThinkClose));
  if (!context.options->chat.reasoning_parser || !close) {
    return RuleError(
        "`thinking_token_budget` needs a reasoning parser: start the server with "
        "--reasoning-parser.",
        "thinking_token_budget");
  }
  job->think_close_token = *close;
  return absl::OkStatus();
}

// The format of the calls, if anything asks for one.
std::optional<grammar::OutputFormat> CallFormat(const ServingContext& context,
                                                const ChatFields& chat) {
  const ChatOptions& options = context.options->chat;
  const bool has_marker =
      context.tokenizer->FindAddedToken(text::MarkerText(text::Marker::kDsml)).has_value();
  const bool calls = chat.tool_choice != ToolChoice::kNone && options.tool_parser && has_marker;
  if (!calls || chat.render.tools.empty()) return std::nullopt;
  const bool forced = IsForced(chat.tool_choice);
  if (!chat.has_strict_tool && !forced && chat.parallel_tool_calls &&
      options.tool_strictness == ToolStrictness::kAuto) {
    return std::nullopt;
  }
  return grammar::OutputFormat{
      .kind = grammar::OutputFormat::Kind::kToolCalls,
      .calls = {.tools = chat.render.tools,
                .named = chat.named_tool,
                .required = forced,
                .one_call = !chat.parallel_tool_calls,
                .hold_arguments = options.tool_strictness == ToolStrictness::kParameter}};
}

// A forced call goes before the format that a request asks for, and that before free calls.
// Reasoning is free of any.
void SettleFormat(const ServingContext& context, const ChatFields& chat, text::OutputStart start,
                  Job* job) {
  const bool forced = IsForced(chat.tool_choice);
  if (forced || !job->request.format) job->request.format = CallFormat(context, chat);
  if (forced && !chat.render.thinking) {
    job->format_begun = context.tokenizer->Encode(ForcedCallText(chat.named_tool));
  }
  if (start == text::OutputStart::kReasoning && context.options->chat.reasoning_parser) {
    job->format_starts_behind =
        context.tokenizer->FindAddedToken(text::MarkerText(text::Marker::kThinkClose));
  }
}

}  // namespace

absl::StatusOr<Job> MakeChatJob(const ServingContext& context, const RequestFields& fields) {
  const ServerOptions& options = *context.options;
  RETURN_IF_ERROR(NeedTokenizer(context));
  Job job;
  GenerationRequest& request = job.request;
  RETURN_IF_ERROR(ReadGenerationFields(fields, options, &request));
  RETURN_IF_ERROR(ReadMaxTokens(fields, &request));
  RETURN_IF_ERROR(ReadLogprobs(fields, &request));
  ASSIGN_OR_RETURN(ChatFields chat, ReadChatFields(fields, options.chat));
  RETURN_IF_ERROR(CheckGenerationRules(fields, options, request));
  RETURN_IF_ERROR(CheckModelName(options, request.model));
  RETURN_IF_ERROR(CheckToolFlags(options.chat, chat));
  RETURN_IF_ERROR(CheckThinkingBudget(context, &job));

  job.tool_choice = chat.tool_choice;
  job.include_reasoning = chat.include_reasoning;
  job.script_key = LastUserText(chat.messages);
  const text::ChatMessage& last = chat.messages.back();
  if (request.echo && last.role == text::Role::kAssistant) job.echo_text = last.content;
  if (IsForced(chat.tool_choice)) {
    RETURN_IF_ERROR(ForceCall(context, chat.named_tool, &chat, &job));
  }
  std::shared_ptr<const text::ToolSchemas> schemas;
  if (!chat.render.tools.empty()) {
    ASSIGN_OR_RETURN(text::ToolSchemas parsed, text::ToolSchemas::FromJson(chat.render.tools));
    schemas = std::make_shared<const text::ToolSchemas>(std::move(parsed));
  }
  ASSIGN_OR_RETURN(size_t limit, PromptTokenLimit(request, MessageBytes(chat.messages),
                                                  context.tokenizer->longest_token_bytes(),
                                                  context.max_model_len));
  ASSIGN_OR_RETURN(EncodedChat encoded, Encode(context, chat, limit));
  job.parser = ParserFor(options.chat, chat, encoded.start);
  job.parser->tools = std::move(schemas);
  SettleFormat(context, chat, encoded.start, &job);
  job.prompts.push_back(std::move(encoded.prompt));
  RETURN_IF_ERROR(FinishJob(context, limit, &job));
  return job;
}

absl::StatusOr<JobPrompt> EncodeConversation(const ServingContext& context,
                                             const RequestFields& fields) {
  ASSIGN_OR_RETURN(ChatFields chat, ReadChatFields(fields, context.options->chat));
  ASSIGN_OR_RETURN(EncodedChat encoded, Encode(context, chat, std::numeric_limits<size_t>::max()));
  return std::move(encoded.prompt);
}

}  // namespace fulgur::server

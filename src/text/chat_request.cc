#include "text/chat_request.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/status_macros.h"
#include "text/json.h"

namespace fulgur::text {
namespace {

absl::Status Refuse(std::string_view where, std::string_view what) {
  return absl::InvalidArgumentError(fmt::format("`{}` {}", where, what));
}

absl::StatusOr<Role> ReadRole(const JsonValue& message, const std::string& where) {
  struct Entry {
    std::string_view name;
    Role role;
  };
  static constexpr Entry kRoles[] = {
      {"system", Role::kSystem}, {"developer", Role::kDeveloper},
      {"user", Role::kUser},     {"assistant", Role::kAssistant},
      {"tool", Role::kTool},     {"latest_reminder", Role::kLatestReminder},
  };
  const JsonValue* role = message.Find("role");
  for (const Entry& entry : kRoles) {
    if (role != nullptr && role->is_string() && role->string() == entry.name) return entry.role;
  }
  std::string rule = "must be system, developer, user, assistant, tool or latest_reminder";
  if (role != nullptr && role->is_string()) rule += ". Invalid role: " + role->string();
  return Refuse(where + ".role", rule);
}

// An optional text field; absent and null are empty.
absl::StatusOr<std::string> ReadText(const JsonValue& object, std::string_view key,
                                     const std::string& where) {
  const JsonValue* value = object.Find(key);
  if (value == nullptr || value->is_null()) return std::string();
  if (!value->is_string()) return Refuse(fmt::format("{}.{}", where, key), "must be a text");
  return value->string();
}

// An optional field that is passed on as JSON; absent, null and [] are empty.
std::string ReadJson(const JsonValue& object, std::string_view key) {
  const JsonValue* value = object.Find(key);
  const bool empty =
      value == nullptr || value->is_null() || (value->is_array() && value->items().empty());
  return empty ? "" : WriteJson(*value, NumberStyle::kAsWritten);
}

absl::StatusOr<std::string> ReadPart(const JsonValue& part, const ContentRules& rules,
                                     const std::string& where) {
  if (part.is_string()) return part.string();
  ASSIGN_OR_RETURN(const std::string type, ReadText(part, "type", where));
  if (type == "text" || type == "input_text" || type == "output_text") {
    return ReadText(part, "text", where);
  }
  if (type == "refusal") return ReadText(part, "refusal", where);
  if (rules.placeholder_for_unsupported) return fmt::format("[Unsupported {}]", type);
  return Refuse(where, fmt::format("has the type \"{}\"; this model reads only text", type));
}

absl::StatusOr<std::string> ReadContent(const JsonValue& message, Role role,
                                        const ContentRules& rules, const std::string& where) {
  const JsonValue* content = message.Find("content");
  if (content == nullptr && role != Role::kAssistant) {
    return Refuse(where + ".content", "is required: a text or a list of parts");
  }
  if (content == nullptr || content->is_null()) return std::string();
  if (content->is_string()) return content->string();
  if (!content->is_array()) return Refuse(where + ".content", "must be a text or a list of parts");
  std::string text;
  for (size_t i = 0; i < content->items().size(); ++i) {
    if (i > 0) text += role == Role::kTool ? rules.separator_in_tool_results : rules.separator;
    ASSIGN_OR_RETURN(const std::string part,
                     ReadPart(content->items()[i], rules, fmt::format("{}.content[{}]", where, i)));
    text += part;
  }
  return text;
}

absl::StatusOr<ChatToolCall> ReadToolCall(const JsonValue& json, const std::string& where) {
  ChatToolCall call;
  ASSIGN_OR_RETURN(call.id, ReadText(json, "id", where));
  const JsonValue* function = json.Find("function");
  if (function == nullptr) return Refuse(where, "must have a \"function\" with a name");
  ASSIGN_OR_RETURN(call.name, ReadText(*function, "name", where + ".function"));
  if (call.name.empty()) return Refuse(where + ".function.name", "must not be empty");
  const JsonValue* arguments = function->Find("arguments");
  if (arguments != nullptr && arguments->is_string()) {
    call.arguments = arguments->string();
  } else if (arguments != nullptr && !arguments->is_null()) {
    call.arguments = WriteJson(*arguments, NumberStyle::kAsWritten);
  }
  return call;
}

absl::StatusOr<std::vector<ChatToolCall>> ReadToolCalls(const JsonValue& message,
                                                        const std::string& where) {
  std::vector<ChatToolCall> calls;
  const JsonValue* list = message.Find("tool_calls");
  if (list == nullptr || list->is_null()) return calls;
  if (!list->is_array()) return Refuse(where + ".tool_calls", "must be a list");
  for (size_t i = 0; i < list->items().size(); ++i) {
    ASSIGN_OR_RETURN(calls.emplace_back(),
                     ReadToolCall(list->items()[i], fmt::format("{}.tool_calls[{}]", where, i)));
  }
  return calls;
}

absl::Status ReadAssistant(const JsonValue& json, const std::string& where, ChatMessage* message) {
  const JsonValue* reasoning = json.Find("reasoning");
  const bool newer_name = reasoning != nullptr && !reasoning->is_null();
  ASSIGN_OR_RETURN(message->reasoning,
                   ReadText(json, newer_name ? "reasoning" : "reasoning_content", where));
  ASSIGN_OR_RETURN(message->tool_calls, ReadToolCalls(json, where));
  const JsonValue* open = json.Find("wo_eos");
  message->without_eos =
      open != nullptr && open->type() == JsonValue::Type::kBoolean && open->boolean();
  return absl::OkStatus();
}

absl::StatusOr<ChatMessage> ReadMessage(const JsonValue& json, const ContentRules& rules,
                                        const std::string& where) {
  if (!json.is_object()) return Refuse(where, "must be an object");
  ChatMessage message;
  ASSIGN_OR_RETURN(message.role, ReadRole(json, where));
  ASSIGN_OR_RETURN(message.content, ReadContent(json, message.role, rules, where));
  switch (message.role) {
    case Role::kAssistant:
      RETURN_IF_ERROR(ReadAssistant(json, where, &message));
      break;
    case Role::kTool: {
      ASSIGN_OR_RETURN(message.tool_call_id, ReadText(json, "tool_call_id", where));
      break;
    }
    case Role::kUser: {
      ASSIGN_OR_RETURN(message.task, ReadText(json, "task", where));
      break;
    }
    case Role::kSystem:
    case Role::kDeveloper:
      message.tools = ReadJson(json, "tools");
      message.response_format = ReadJson(json, "response_format");
      break;
    case Role::kLatestReminder:
      break;
  }
  return message;
}

bool IsTruthy(const JsonValue& value) {
  switch (value.type()) {
    case JsonValue::Type::kNull:
      return false;
    case JsonValue::Type::kBoolean:
      return value.boolean();
    case JsonValue::Type::kInteger:
    case JsonValue::Type::kNumber:
      return value.number_spelling().find_first_of("123456789") != std::string::npos;
    case JsonValue::Type::kString:
      return !value.string().empty();
    case JsonValue::Type::kArray:
      return !value.items().empty();
    case JsonValue::Type::kObject:
      return !value.members().empty();
  }
  return false;
}

absl::StatusOr<JsonValue> ReadKwargs(const std::string& json) {
  if (json.empty()) return JsonValue();
  absl::StatusOr<JsonValue> kwargs = ParseJson(json);
  if (!kwargs.ok()) {
    return Refuse("chat_template_kwargs", "is " + std::string(kwargs.status().message()));
  }
  if (!kwargs->is_object() && !kwargs->is_null()) {
    return Refuse("chat_template_kwargs", "must be an object");
  }
  return kwargs;
}

// The template arguments of request and server, the request's first.
class Kwargs {
 public:
  Kwargs(JsonValue request, JsonValue server)
      : request_(std::move(request)), server_(std::move(server)) {}

  const JsonValue* Find(std::string_view key) const {
    const JsonValue* own = request_.Find(key);
    return own != nullptr ? own : server_.Find(key);
  }
  bool InRequest(std::string_view key) const { return request_.Find(key) != nullptr; }
  std::optional<bool> Flag(std::string_view key) const {
    const JsonValue* value = Find(key);
    if (value == nullptr) return std::nullopt;
    return IsTruthy(*value);
  }

 private:
  JsonValue request_;
  JsonValue server_;
};

bool IsKnownEffort(std::string_view effort) {
  constexpr std::string_view kEfforts[] = {"none", "minimal", "low", "medium",
                                           "high", "xhigh",   "max"};
  return std::find(std::begin(kEfforts), std::end(kEfforts), effort) != std::end(kEfforts);
}

ReasoningEffort MapEffort(const std::optional<std::string>& effort, ThinkingDefaults defaults) {
  const bool current = defaults == ThinkingDefaults::kCurrent;
  if (!effort.has_value()) return current ? ReasoningEffort::kHigh : ReasoningEffort::kNone;
  if (*effort == "max" || (*effort == "xhigh" && !current)) return ReasoningEffort::kMax;
  const bool low = *effort == "minimal" || *effort == "low" || *effort == "medium";
  return low && current ? ReasoningEffort::kLow : ReasoningEffort::kHigh;
}

}  // namespace

absl::StatusOr<std::vector<ChatMessage>> ParseMessages(std::string_view messages_json,
                                                       const ContentRules& rules) {
  absl::StatusOr<JsonValue> list = ParseJson(messages_json);
  if (!list.ok()) return Refuse("messages", "is " + std::string(list.status().message()));
  if (!list->is_array()) return Refuse("messages", "must be a list");
  std::vector<ChatMessage> messages;
  for (size_t i = 0; i < list->items().size(); ++i) {
    ASSIGN_OR_RETURN(messages.emplace_back(),
                     ReadMessage(list->items()[i], rules, fmt::format("messages[{}]", i)));
  }
  return messages;
}

absl::StatusOr<ThinkingChoice> ResolveThinking(const ThinkingRequest& request,
                                               ThinkingDefaults defaults) {
  ASSIGN_OR_RETURN(JsonValue own, ReadKwargs(request.template_kwargs));
  ASSIGN_OR_RETURN(JsonValue server, ReadKwargs(request.default_template_kwargs));
  const Kwargs kwargs(std::move(own), std::move(server));

  std::optional<std::string> effort = request.reasoning_effort;
  std::optional<bool> enable = kwargs.Flag("enable_thinking");
  if (effort.has_value()) {
    if (!IsKnownEffort(*effort)) {
      return Refuse("reasoning_effort",
                    "must be one of none, minimal, low, medium, high, xhigh and max");
    }
    if (!kwargs.InRequest("enable_thinking")) enable = *effort != "none";
  } else if (const JsonValue* named = kwargs.Find("reasoning_effort");
             named != nullptr && named->is_string()) {
    effort = named->string();
  }
  const std::optional<bool> thinking = kwargs.Flag("thinking");
  ThinkingChoice choice;
  choice.thinking = thinking.has_value() || enable.has_value()
                        ? thinking.value_or(false) || enable.value_or(false)
                        : defaults == ThinkingDefaults::kCurrent;
  if (request.thinking_type.has_value()) {
    if (*request.thinking_type != "enabled" && *request.thinking_type != "disabled") {
      return Refuse("thinking.type", "must be enabled or disabled");
    }
    choice.thinking = *request.thinking_type == "enabled";
  }
  if (effort == "none") choice.thinking = false;
  choice.effort = choice.thinking ? MapEffort(effort, defaults) : ReasoningEffort::kNone;
  choice.drop_thinking = kwargs.Flag("drop_thinking").value_or(true);
  return choice;
}

}  // namespace fulgur::text

#include "text/chat_encoding.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "base/status_macros.h"
#include "text/json.h"
#include "text/prompt_strings.h"

namespace fulgur::text {
namespace {

struct Task {
  std::string_view name;
  std::string_view token;
};
constexpr Task kTasks[] = {
    {"action", "<｜action｜>"}, {"query", "<｜query｜>"}, {"authority", "<｜authority｜>"},
    {"domain", "<｜domain｜>"}, {"title", "<｜title｜>"}, {"read_url", "<｜read_url｜>"},
};

absl::StatusOr<JsonValue> ParseField(std::string_view field, std::string_view json) {
  absl::StatusOr<JsonValue> value = ParseJson(json);
  if (value.ok()) return value;
  return absl::InvalidArgumentError(
      fmt::format("`{}` is {}", field, std::string(value.status().message())));
}

const Task* FindTask(std::string_view name) {
  const auto* task = std::find_if(std::begin(kTasks), std::end(kTasks),
                                  [&](const Task& known) { return known.name == name; });
  return task == std::end(kTasks) ? nullptr : task;
}

// A part of a user turn: something the user wrote, or the result of a tool.
struct Block {
  bool is_result;
  std::string call_id;
  std::string text;
};

// A message as it is rendered: results and consecutive user messages share one user turn.
struct Turn {
  ChatMessage message;
  std::vector<Block> blocks;  // user turns; the message's content is moved here
};

bool CountsAsUser(const Turn& turn) {
  return turn.message.role == Role::kUser || turn.message.role == Role::kDeveloper;
}

std::vector<Turn> Fold(std::vector<ChatMessage> messages) {
  std::vector<Turn> turns;
  for (ChatMessage& message : messages) {
    const bool is_result = message.role == Role::kTool;
    if (!is_result && message.role != Role::kUser) {
      turns.push_back({std::move(message), {}});
      continue;
    }
    Block block{is_result, std::move(message.tool_call_id), std::move(message.content)};
    // A user turn with a task is answered before anything else may be said.
    const bool joins = !turns.empty() && turns.back().message.role == Role::kUser &&
                       (is_result || turns.back().message.task.empty());
    if (!joins) {
      Turn turn;
      turn.message.role = Role::kUser;
      turns.push_back(std::move(turn));
    }
    if (!is_result) turns.back().message.task = std::move(message.task);
    turns.back().blocks.push_back(std::move(block));
  }
  return turns;
}

// Within a user turn, results come in the order of the calls they answer; text keeps its place.
void SortResults(std::vector<Turn>* turns) {
  absl::flat_hash_map<std::string, size_t> order;
  for (Turn& turn : *turns) {
    if (!turn.message.tool_calls.empty()) {
      order.clear();
      for (size_t i = 0; i < turn.message.tool_calls.size(); ++i) {
        const std::string& id = turn.message.tool_calls[i].id;
        if (!id.empty()) order[id] = i;
      }
    }
    if (order.empty()) continue;
    std::vector<Block> results;
    for (Block& block : turn.blocks) {
      if (block.is_result) results.push_back(std::move(block));
    }
    const auto position = [&](const Block& block) {
      const auto place = order.find(block.call_id);
      return place == order.end() ? 0 : place->second;
    };
    std::stable_sort(results.begin(), results.end(),
                     [&](const Block& a, const Block& b) { return position(a) < position(b); });
    auto next = results.begin();
    for (Block& block : turn.blocks) {
      if (block.is_result) block = std::move(*next++);
    }
  }
}

int LastUserTurn(const std::vector<Turn>& turns) {
  const auto last = std::find_if(turns.rbegin(), turns.rend(), CountsAsUser);
  return static_cast<int>(turns.rend() - last) - 1;
}

void DropDevelopersBefore(int last_user, std::vector<Turn>* turns) {
  const auto end = turns->begin() + std::max(last_user, 0);
  const auto kept = std::remove_if(
      turns->begin(), end, [](const Turn& turn) { return turn.message.role == Role::kDeveloper; });
  turns->erase(kept, end);
}

// A prompt under construction, which knows what is markup and what a client wrote.
class PromptBuilder {
 public:
  void Markup(std::string_view text) { prompt_.text.append(text); }

  void Client(std::string_view text) {
    if (text.empty()) return;
    const size_t begin = prompt_.text.size();
    prompt_.text.append(text);
    if (!prompt_.client_text.empty() && prompt_.client_text.back().end == begin) {
      prompt_.client_text.back().end = prompt_.text.size();
    } else {
      prompt_.client_text.push_back({begin, prompt_.text.size()});
    }
  }

  void SetStart(OutputStart start) { prompt_.start = start; }
  ChatPrompt Take() { return std::move(prompt_); }
  bool EndsThinking() const { return prompt_.text.ends_with(kThinkOpen); }

 private:
  ChatPrompt prompt_;
};

class Renderer {
 public:
  Renderer(std::vector<Turn> turns, bool drop, const ChatOptions& options)
      : turns_(std::move(turns)), drop_(drop), options_(options) {
    last_user_ = LastUserTurn(turns_);
  }

  absl::StatusOr<ChatPrompt> Run() {
    out_.Markup(kBos);
    if (options_.thinking) out_.Markup(EffortText());
    for (size_t i = 0; i < turns_.size(); ++i) {
      RETURN_IF_ERROR(Body(i));
      if (Closes(i)) Header(i);
    }
    SetStart();
    return out_.Take();
  }

 private:
  std::string_view EffortText() const {
    const bool official = options_.effort_profile == EffortProfile::kOfficial;
    if (options_.effort == ReasoningEffort::kMax) return official ? kEffortBeyond : kEffortAbsolute;
    return options_.effort == ReasoningEffort::kHigh && official ? kEffortAbsolute : "";
  }

  absl::Status Body(size_t i) {
    const ChatMessage& message = turns_[i].message;
    switch (message.role) {
      case Role::kDeveloper:
        if (message.content.empty()) {
          return absl::InvalidArgumentError("a developer message must not be empty");
        }
        out_.Markup(kUser);
        [[fallthrough]];
      case Role::kSystem:
        out_.Client(message.content);
        return Blocks(message);
      case Role::kUser:
        UserTurn(turns_[i]);
        return absl::OkStatus();
      case Role::kLatestReminder:
        out_.Markup(kLatestReminder);
        out_.Client(message.content);
        return absl::OkStatus();
      case Role::kAssistant:
        AssistantTurn(i);
        return absl::OkStatus();
      case Role::kTool:
        break;  // became part of a user turn
    }
    return absl::InternalError("a message of this role cannot be rendered");
  }

  absl::Status Blocks(const ChatMessage& message) {
    if (!message.tools.empty()) RETURN_IF_ERROR(ToolsBlock(message.tools));
    if (message.response_format.empty()) return absl::OkStatus();
    ASSIGN_OR_RETURN(const JsonValue format,
                     ParseField("response_format", message.response_format));
    out_.Markup("\n\n");
    out_.Markup(kResponseFormat);
    out_.Client(WriteJson(format, NumberStyle::kPython));
    return absl::OkStatus();
  }

  absl::Status ToolsBlock(const std::string& tools_json) {
    ASSIGN_OR_RETURN(const JsonValue tools, ParseField("tools", tools_json));
    if (!tools.is_array()) return absl::InvalidArgumentError("`tools` must be a list");
    out_.Markup("\n\n");
    out_.Markup(kToolsBefore);
    for (size_t i = 0; i < tools.items().size(); ++i) {
      const JsonValue* function = tools.items()[i].Find("function");
      if (function == nullptr || !function->is_object()) {
        return absl::InvalidArgumentError(
            fmt::format("`tools[{}]` must have a \"function\" object", i));
      }
      if (i > 0) out_.Markup("\n");
      out_.Client(WriteJson(InTrainedOrder(*function), NumberStyle::kPython));
    }
    out_.Markup(kToolsAfter);
    return absl::OkStatus();
  }

  // The order of keys that the model has seen; a missing one of the first three is null.
  static JsonValue InTrainedOrder(const JsonValue& function) {
    constexpr std::string_view kFirst[] = {"name", "description", "parameters"};
    std::vector<JsonValue::Member> members;
    for (std::string_view key : kFirst) {
      const JsonValue* value = function.Find(key);
      members.emplace_back(key, value == nullptr ? JsonValue() : *value);
    }
    if (const JsonValue* strict = function.Find("strict")) members.emplace_back("strict", *strict);
    for (const JsonValue::Member& member : function.members()) {
      const bool placed =
          member.first == "strict" ||
          std::find(std::begin(kFirst), std::end(kFirst), member.first) != std::end(kFirst);
      if (!placed) members.push_back(member);
    }
    return JsonValue::Object(std::move(members));
  }

  void UserTurn(const Turn& turn) {
    out_.Markup(kUser);
    for (size_t i = 0; i < turn.blocks.size(); ++i) {
      if (i > 0) out_.Markup("\n\n");
      if (turn.blocks[i].is_result) out_.Markup(kToolResultOpen);
      out_.Client(turn.blocks[i].text);
      if (turn.blocks[i].is_result) out_.Markup(kToolResultClose);
    }
  }

  // --- assistant turns ---

  bool IsContinued(size_t i) const {
    return options_.continue_final_message && i + 1 == turns_.size();
  }

  // The reasoning of an assistant turn is in the prompt: its header opened it.
  bool KeepsReasoning(size_t i) const {
    const bool after_task = i > 0 && !turns_[i - 1].message.task.empty();
    return options_.thinking && !after_task && (!drop_ || static_cast<int>(i) > last_user_) &&
           !AnsweredWithoutThinking(i);
  }

  bool AnsweredWithoutThinking(size_t i) const {
    return options_.empty_reasoning_as_chat && i < turns_.size() &&
           turns_[i].message.role == Role::kAssistant && turns_[i].message.reasoning.empty();
  }

  // A continued turn that has nothing but reasoning goes on reasoning.
  bool ReasoningStaysOpen(size_t i) const {
    const ChatMessage& message = turns_[i].message;
    return IsContinued(i) && KeepsReasoning(i) && message.content.empty() &&
           message.tool_calls.empty() && !message.reasoning.empty();
  }

  void AssistantTurn(size_t i) {
    const ChatMessage& message = turns_[i].message;
    if (KeepsReasoning(i)) {
      out_.Client(message.reasoning);
      if (ReasoningStaysOpen(i)) return;
      out_.Markup(kThinkClose);
    }
    out_.Client(message.content);
    if (!message.tool_calls.empty()) ToolCalls(message.tool_calls);
    if (!message.without_eos && !IsContinued(i)) out_.Markup(kEos);
  }

  void ToolCalls(const std::vector<ChatToolCall>& calls) {
    out_.Markup("\n\n");
    out_.Markup(kCallsOpen);
    out_.Markup("\n");
    for (const ChatToolCall& call : calls) {
      InvokeOpen(call.name);
      Parameters(call.arguments);
      out_.Markup("\n");
      out_.Markup(kInvokeClose);
      out_.Markup("\n");
    }
    out_.Markup(kCallsClose);
  }

  void InvokeOpen(std::string_view name) {
    out_.Markup(kInvokeOpen);
    out_.Client(name);
    out_.Markup("\">\n");
  }

  void Parameters(const std::string& arguments) {
    const absl::StatusOr<JsonValue> parsed = ParseJson(arguments.empty() ? "{}" : arguments);
    // What is no JSON object is shown to the model as it was, in one parameter: a client cannot
    // repair its history.
    const JsonValue object = parsed.ok() && parsed->is_object()
                                 ? *parsed
                                 : JsonValue::Object({{"arguments", JsonValue::String(arguments)}});
    std::string_view separator;
    for (const auto& [key, value] : object.members()) {
      out_.Markup(std::exchange(separator, "\n"));
      out_.Markup(kParameterOpen);
      out_.Client(key);
      out_.Markup(value.is_string() ? kParameterString : kParameterJson);
      out_.Client(value.is_string() ? value.string() : WriteJson(value, NumberStyle::kPython));
      out_.Markup(kParameterClose);
    }
  }

  // --- what opens the next turn ---

  bool IsLast(size_t i) const { return i + 1 == turns_.size(); }

  bool Closes(size_t i) const {
    if (IsLast(i)) return options_.add_generation_prompt;
    const Role next = turns_[i + 1].message.role;
    return next == Role::kAssistant || next == Role::kLatestReminder;
  }

  void Header(size_t i) {
    const ChatMessage& message = turns_[i].message;
    if (const Task* task = FindTask(message.task)) return TaskHeader(*task);
    const bool reminder_next = !IsLast(i) && turns_[i + 1].message.role == Role::kLatestReminder;
    const bool answers_system =
        message.role == Role::kSystem && options_.header_after_system && !reminder_next;
    const bool reopens = message.role == Role::kAssistant && IsLast(i) &&
                         options_.reopen_after_assistant && !message.without_eos;
    if (!CountsAsUser(turns_[i]) && !answers_system && !reopens) return;
    const bool thinks = options_.thinking && (!drop_ || static_cast<int>(i) >= last_user_) &&
                        !AnsweredWithoutThinking(i + 1);
    out_.Markup(kAssistant);
    out_.Markup(thinks ? kThinkOpen : kThinkClose);
  }

  void TaskHeader(const Task& task) {
    if (task.name == "action") {
      out_.Markup(kAssistant);
      out_.Markup(options_.thinking ? kThinkOpen : kThinkClose);
    }
    out_.Markup(task.token);
  }

  void SetStart() {
    const bool reasons =
        out_.EndsThinking() || (!turns_.empty() && ReasoningStaysOpen(turns_.size() - 1));
    if (reasons) out_.SetStart(OutputStart::kReasoning);
    if (!options_.forced_tool.has_value()) return;
    out_.Markup("\n\n");
    out_.Markup(kCallsOpen);
    out_.Markup("\n");
    if (!options_.forced_tool->empty()) InvokeOpen(*options_.forced_tool);
    out_.SetStart(options_.forced_tool->empty() ? OutputStart::kToolCalls
                                                : OutputStart::kArguments);
  }

  std::vector<Turn> turns_;
  bool drop_;
  const ChatOptions& options_;
  int last_user_ = -1;
  PromptBuilder out_;
};

absl::Status CheckOptions(const std::vector<ChatMessage>& messages, const ChatOptions& options) {
  if (options.continue_final_message && options.add_generation_prompt) {
    return absl::InvalidArgumentError(
        "`continue_final_message` and `add_generation_prompt` cannot both be true");
  }
  if (options.continue_final_message &&
      (messages.empty() || messages.back().role != Role::kAssistant)) {
    return absl::InvalidArgumentError(
        "`continue_final_message` needs a last message of the role assistant");
  }
  if (options.forced_tool.has_value() && (options.thinking || !options.add_generation_prompt)) {
    return absl::InvalidArgumentError(
        "a tool call can only be forced where the model answers without thinking first");
  }
  for (const ChatMessage& message : messages) {
    if (!message.task.empty() && FindTask(message.task) == nullptr) {
      return absl::InvalidArgumentError(fmt::format(
          "the task \"{}\" is unknown; known are action, query, authority, domain, title and "
          "read_url",
          message.task));
    }
  }
  return absl::OkStatus();
}

void PlaceTools(const ChatOptions& options, std::vector<ChatMessage>* messages) {
  if (options.tools.empty()) return;
  auto place = options.tools_in_own_message
                   ? messages->end()
                   : std::find_if(messages->begin(), messages->end(),
                                  [](const ChatMessage& m) { return m.role == Role::kSystem; });
  if (place == messages->end()) {
    ChatMessage own;
    own.role = Role::kSystem;
    place = messages->insert(messages->begin(), std::move(own));
  }
  place->tools = options.tools;
}

}  // namespace

absl::StatusOr<ChatPrompt> RenderChat(std::vector<ChatMessage> messages,
                                      const ChatOptions& options) {
  RETURN_IF_ERROR(CheckOptions(messages, options));
  PlaceTools(options, &messages);
  const bool has_tools = std::any_of(messages.begin(), messages.end(),
                                     [](const ChatMessage& m) { return !m.tools.empty(); });
  const bool drop = options.drop_thinking && !has_tools;
  std::vector<Turn> turns = Fold(std::move(messages));
  SortResults(&turns);
  if (drop && options.thinking) DropDevelopersBefore(LastUserTurn(turns), &turns);
  return Renderer(std::move(turns), drop, options).Run();
}

ChatPrompt RenderFillInTheMiddle(std::string_view prefix, std::string_view suffix) {
  PromptBuilder out;
  out.Markup(kFimBegin);
  out.Client(prefix);
  out.Markup(kFimHole);
  out.Client(suffix);
  out.Markup(kFimEnd);
  return out.Take();
}

std::vector<int32_t> EncodePrompt(const Tokenizer& tokenizer, const ChatPrompt& prompt,
                                  const PromptEncodeOptions& options) {
  EncodeOptions encode;
  encode.max_tokens = options.max_tokens;
  if (!options.client_special_tokens) encode.plain_text = prompt.client_text;
  return tokenizer.Encode(prompt.text, encode);
}

absl::Status CheckChatTokens(const Tokenizer& tokenizer) {
  for (int i = 0; i < kNumMarkers; ++i) {
    const std::string_view token = MarkerText(static_cast<Marker>(i));
    if (tokenizer.FindAddedToken(token).has_value()) continue;
    return absl::FailedPreconditionError(fmt::format(
        "the tokenizer has no token {}, which the DeepSeek-V4 chat format needs", token));
  }
  return absl::OkStatus();
}

std::optional<EffortProfile> DetectEffortProfile(std::string_view encoding_script) {
  const auto has = [&](std::string_view part) {
    return encoding_script.find(part) != encoding_script.npos;
  };
  const auto has_key = [&](std::string_view key) {
    return has(fmt::format("\"{}\"", key)) || has(fmt::format("'{}'", key));
  };
  // The value assigned to DEFAULT_REASONING_EFFORT, up to the end of its line.
  constexpr std::string_view kDefault = "\nDEFAULT_REASONING_EFFORT";
  const size_t assignment = encoding_script.find(kDefault);
  const std::string_view line =
      assignment == encoding_script.npos
          ? ""
          : encoding_script.substr(assignment + 1)
                .substr(0, encoding_script.substr(assignment + 1).find('\n'));
  const bool default_low = line.find('=') != line.npos &&
                           (line.find("\"low\"") != line.npos || line.find("'low'") != line.npos);
  if (default_low && has("REASONING_EFFORT_PROMPTS") && has_key("high") && has_key("max")) {
    return EffortProfile::kOfficial;
  }
  if (has("REASONING_EFFORT_MAX")) return EffortProfile::kPreview;
  return std::nullopt;
}

}  // namespace fulgur::text

// Answers of /v1/chat/completions.
#include <fmt/format.h>

#include <optional>
#include <utility>

#include "server/answer_json.h"
#include "server/random_id.h"
#include "server/stream_answer.h"
#include "server/whole_answer.h"

namespace fulgur::server {
namespace {

using text::OutputDelta;

std::string NewCallId() { return "chatcmpl-tool-" + RandomHex(16); }

void WriteReasoning(ReasoningField field, std::string_view text, JsonWriter* json) {
  if (field != ReasoningField::kReasoningContent) json->Field("reasoning", text);
  if (field != ReasoningField::kReasoning) json->Field("reasoning_content", text);
}

// The deltas of one step, sorted by kind; pieces of one call become one entry.
struct StepDelta {
  struct Call {
    int index = 0;
    std::optional<std::string> name;  // a new call
    std::string arguments;
  };
  std::string reasoning;
  std::string content;
  std::vector<Call> calls;

  bool empty() const { return reasoning.empty() && content.empty() && calls.empty(); }
};

StepDelta::Call& CallOf(StepDelta* step, int index) {
  if (step->calls.empty() || step->calls.back().index != index) {
    step->calls.push_back({index, std::nullopt, ""});
  }
  return step->calls.back();
}

StepDelta SortDeltas(const std::vector<OutputDelta>& deltas, bool include_reasoning) {
  StepDelta step;
  for (const OutputDelta& delta : deltas) {
    switch (delta.kind) {
      case OutputDelta::Kind::kReasoning:
        if (include_reasoning) step.reasoning += delta.text;
        break;
      case OutputDelta::Kind::kContent:
        step.content += delta.text;
        break;
      case OutputDelta::Kind::kToolCall:
        CallOf(&step, delta.call_index).name = delta.text;
        break;
      case OutputDelta::Kind::kArguments:
        CallOf(&step, delta.call_index).arguments += delta.text;
        break;
    }
  }
  return step;
}

void WriteCallDeltas(const std::vector<StepDelta::Call>& calls, JsonWriter* json) {
  json->Key("tool_calls").BeginArray();
  for (const auto& call : calls) {
    json->BeginObject().Field("index", call.index);
    if (call.name) json->Field("id", NewCallId()).Field("type", "function");
    json->Key("function").BeginObject();
    if (call.name) json->Field("name", *call.name);
    json->Field("arguments", call.arguments).EndObject().EndObject();
  }
  json->EndArray();
}

class ChatStreamAnswer : public StreamAnswer {
 public:
  explicit ChatStreamAnswer(AnswerContext context)
      : StreamAnswer(std::move(context), "chat.completion.chunk"),
        opened_(this->context().num_choices()) {}

 private:
  bool WriteUpdate(size_t choice, const ChoiceUpdate& update, const Usage& so_far) override {
    if (!opened_[choice]) Open(choice, so_far);
    StepDelta step = SortDeltas(update.deltas, context().job->include_reasoning);
    bool show_ids = context().request().return_token_ids;
    if (step.empty() && !update.finish && !show_ids) return false;
    JsonWriter json = BeginChunk();
    json.Key("choices").BeginArray().BeginObject();
    json.Field("index", choice).Key("delta").BeginObject();
    if (!step.reasoning.empty()) {
      WriteReasoning(context().options->chat.reasoning_field, step.reasoning, &json);
    }
    if (!step.content.empty()) json.Field("content", step.content);
    if (!step.calls.empty()) WriteCallDeltas(step.calls, &json);
    json.EndObject();
    WriteRest(update, &json);
    json.EndObject().EndArray();
    if (update.finish && !context().request().include_usage) {
      json.OptionalField("system_fingerprint", context().fingerprint);
    }
    WriteChunk(&json, so_far);
    return true;
  }

  void WriteRest(const ChoiceUpdate& update, JsonWriter* json) {
    json->FieldOrNull("logprobs", context().request().logprobs && !update.tokens.empty(),
                      [&] { WriteChatLogprobs(context(), update.tokens, json); });
    json->Key("finish_reason");
    if (update.finish) {
      json->String(update.finish->reason);
      WriteStopReason(*update.finish, json);
    } else {
      json->Null();
    }
    json->FieldOrNull("token_ids", context().request().return_token_ids,
                      [&] { WriteTokenIds(update.tokens, json); });
  }

  // The first chunk of a choice says who speaks.
  void Open(size_t choice, const Usage& so_far) {
    opened_[choice] = true;
    const JobPrompt& prompt = context().job->prompts[context().prompt_of(choice)];
    WriteText(choice, "", true, prompt, so_far);
    if (!context().job->echo_text.empty()) {
      WriteText(choice, context().job->echo_text, false, prompt, so_far);
    }
  }

  void WriteText(size_t choice, std::string_view content, bool first, const JobPrompt& prompt,
                 const Usage& so_far) {
    JsonWriter json = BeginChunk();
    json.Key("choices").BeginArray().BeginObject().Field("index", choice);
    json.Key("delta").BeginObject();
    if (first) json.Field("role", context().options->chat.response_role);
    json.Field("content", content).EndObject();
    json.NullField("logprobs").NullField("finish_reason").EndObject().EndArray();
    if (first) {
      const GenerationRequest& request = context().request();
      json.FieldOrNull("prompt_token_ids", request.return_token_ids,
                       [&] { WriteIds(prompt.tokens, &json); });
      json.FieldOrNull("prompt_text", request.return_prompt_text,
                       [&] { json.String(prompt.text); });
    }
    WriteChunk(&json, so_far);
  }

  std::vector<bool> opened_;
};

class ChatWholeAnswer : public WholeAnswer {
 public:
  explicit ChatWholeAnswer(AnswerContext context)
      : WholeAnswer(std::move(context), "chat.completion") {}

 private:
  void WritePromptFields(JsonWriter* json) const override {
    const GenerationRequest& request = context().request();
    const JobPrompt& prompt = context().job->prompts.front();
    json->FieldOrNull("prompt_logprobs", request.prompt_logprobs.has_value(),
                      [&] { WritePromptLogprobs(context(), prompt_logprobs(0), json); });
    json->FieldOrNull("prompt_token_ids", request.return_token_ids,
                      [&] { WriteIds(prompt.tokens, json); });
    json->FieldOrNull("prompt_text", request.return_prompt_text,
                      [&] { json->String(prompt.text); });
  }

  void WriteChoice(size_t index, const Choice& choice, JsonWriter* json) const override {
    json->BeginObject().Field("index", index).Key("message");
    WriteMessage(choice, json);
    json->FieldOrNull("logprobs", context().request().logprobs.has_value(),
                      [&] { WriteChatLogprobs(context(), choice.tokens, json); });
    json->Field("finish_reason", choice.finish.reason);
    WriteStopReason(choice.finish, json);
    json->FieldOrNull("token_ids", context().request().return_token_ids,
                      [&] { WriteTokenIds(choice.tokens, json); });
    json->NullField("routed_experts").EndObject();
  }

  void WriteMessage(const Choice& choice, JsonWriter* json) const {
    json->BeginObject().Field("role", context().options->chat.response_role);
    std::string content = context().job->echo_text + choice.output.content;
    bool forced = context().job->tool_choice == ToolChoice::kRequired ||
                  context().job->tool_choice == ToolChoice::kNamed;
    json->FieldOrNull("content", !content.empty() || forced, [&] { json->String(content); });
    for (const char* key : {"refusal", "annotations", "audio", "function_call"}) {
      json->NullField(key);
    }
    if (!choice.output.tool_calls.empty()) WriteCalls(choice.output.tool_calls, json);
    if (context().job->include_reasoning && !choice.output.reasoning.empty()) {
      WriteReasoning(context().options->chat.reasoning_field, choice.output.reasoning, json);
    } else if (context().options->chat.reasoning_field != ReasoningField::kReasoningContent) {
      json->NullField("reasoning");
    }
    json->EndObject();
  }

  static void WriteCalls(const std::vector<text::ParsedToolCall>& calls, JsonWriter* json) {
    json->Key("tool_calls").BeginArray();
    for (const auto& call : calls) {
      json->BeginObject().Field("id", NewCallId()).Field("type", "function");
      json->Key("function").BeginObject().Field("name", call.name);
      json->Field("arguments", call.arguments).EndObject().EndObject();
    }
    json->EndArray();
  }
};

}  // namespace

std::unique_ptr<Answer> MakeChatAnswer(AnswerContext context) {
  if (context.request().stream) return std::make_unique<ChatStreamAnswer>(std::move(context));
  return std::make_unique<ChatWholeAnswer>(std::move(context));
}

}  // namespace fulgur::server

// Answers of /v1/completions.
#include <utility>

#include "server/answer_json.h"
#include "server/stream_answer.h"
#include "server/whole_answer.h"

namespace fulgur::server {
namespace {

std::string Join(const std::vector<text::OutputDelta>& deltas) {
  std::string text;
  for (const auto& delta : deltas) text += delta.text;
  return text;
}

class CompletionStreamAnswer : public StreamAnswer {
 public:
  explicit CompletionStreamAnswer(AnswerContext context)
      : StreamAnswer(std::move(context), "text_completion"),
        states_(this->context().num_choices()),
        prompt_logprobs_(this->context().job->prompts.size()) {}

  void SetPromptLogprobs(size_t prompt, PromptLogprobs logprobs) override {
    prompt_logprobs_[prompt] = std::move(logprobs);
  }

 private:
  struct State {
    bool opened = false;
    size_t offset = 0;  // characters before the next token, for text_offset
  };

  bool WriteUpdate(size_t choice, const ChoiceUpdate& update, const Usage& so_far) override {
    const GenerationRequest& request = context().request();
    const JobPrompt& prompt = context().job->prompts[context().prompt_of(choice)];
    State& state = states_[choice];
    std::string text = Join(update.deltas);
    bool first = !state.opened;
    if (first && request.echo) text = prompt.text + text;
    bool show_ids = request.return_token_ids || context().tokenizer == nullptr;
    if (text.empty() && !update.finish && !show_ids) return false;
    state.opened = true;

    JsonWriter json = BeginChunk();
    json.Key("choices").BeginArray().BeginObject().Field("index", choice);
    bool echo = first && request.echo;
    json.Field("text", text);
    json.FieldOrNull("logprobs", request.logprobs && (echo || !update.tokens.empty()),
                     [&] { WriteLogprobs(choice, echo, update, &json); });
    WriteEnd(update, &json);
    json.FieldOrNull("prompt_token_ids", first && request.return_token_ids,
                     [&] { WriteIds(prompt.tokens, &json); });
    json.FieldOrNull("token_ids", show_ids, [&] { WriteTokenIds(update.tokens, &json); });
    json.EndObject().EndArray();
    WriteChunk(&json, so_far);
    return true;
  }

  void WriteLogprobs(size_t choice, bool echo, const ChoiceUpdate& update, JsonWriter* json) {
    State& state = states_[choice];
    size_t prompt = context().prompt_of(choice);
    CompletionLogprobs logprobs(context(), state.offset);
    if (echo) logprobs.AddPrompt(context().job->prompts[prompt].tokens, prompt_logprobs_[prompt]);
    for (const auto& token : update.tokens) logprobs.Add(token);
    state.offset = logprobs.offset();
    logprobs.Write(json);
  }

  static void WriteEnd(const ChoiceUpdate& update, JsonWriter* json) {
    if (!update.finish) {
      json->NullField("finish_reason").NullField("stop_reason");
      return;
    }
    json->Field("finish_reason", update.finish->reason);
    WriteStopReason(*update.finish, json);
  }

  std::vector<State> states_;
  std::vector<PromptLogprobs> prompt_logprobs_;  // by prompt
};

class CompletionWholeAnswer : public WholeAnswer {
 public:
  explicit CompletionWholeAnswer(AnswerContext context)
      : WholeAnswer(std::move(context), "text_completion") {}

 private:
  void WriteChoice(size_t index, const Choice& choice, JsonWriter* json) const override {
    const GenerationRequest& request = context().request();
    const size_t prompt_index = context().prompt_of(index);
    const JobPrompt& prompt = context().job->prompts[prompt_index];
    const std::string& text = choice.output.content;
    json->BeginObject().Field("index", index);
    json->Field("text", request.echo ? prompt.text + text : text).Key("logprobs");
    if (request.logprobs) {
      CompletionLogprobs logprobs(context(), 0);
      if (request.echo) logprobs.AddPrompt(prompt.tokens, prompt_logprobs(prompt_index));
      for (const auto& token : choice.tokens) logprobs.Add(token);
      logprobs.Write(json);
    } else {
      json->Null();
    }
    json->Field("finish_reason", choice.finish.reason);
    WriteStopReason(choice.finish, json);
    bool show_ids = request.return_token_ids || context().tokenizer == nullptr;
    json->FieldOrNull("token_ids", show_ids, [&] { WriteTokenIds(choice.tokens, json); });
    json->FieldOrNull("prompt_logprobs", request.prompt_logprobs.has_value(),
                      [&] { WritePromptLogprobs(context(), prompt_logprobs(prompt_index), json); });
    json->FieldOrNull("prompt_token_ids", request.return_token_ids,
                      [&] { WriteIds(prompt.tokens, json); });
    json->NullField("routed_experts").EndObject();
  }
};

}  // namespace

std::unique_ptr<Answer> MakeCompletionAnswer(AnswerContext context) {
  if (context.request().stream) return std::make_unique<CompletionStreamAnswer>(std::move(context));
  return std::make_unique<CompletionWholeAnswer>(std::move(context));
}

}  // namespace fulgur::server

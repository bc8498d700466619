#include "server/whole_answer.h"

#include <utility>

#include "server/answer_json.h"
#include "server/api_error.h"

namespace fulgur::server {

WholeAnswer::WholeAnswer(AnswerContext context, std::string_view object)
    : context_(std::move(context)),
      head_(AnswerHead(context_, object)),
      choices_(context_.num_choices()),
      prompt_logprobs_(context_.job->prompts.size()) {}

void WholeAnswer::SetPromptLogprobs(size_t prompt, PromptLogprobs logprobs) {
  prompt_logprobs_[prompt] = std::move(logprobs);
}

void WholeAnswer::Update(size_t choice, ChoiceUpdate update, const Usage&) {
  Choice& state = choices_[choice];
  state.output.Append(update.deltas);
  for (auto& token : update.tokens) state.tokens.push_back(std::move(token));
  if (update.finish) state.finish = *std::move(update.finish);
}

void WholeAnswer::End(const Usage& usage) {
  JsonWriter json(std::move(head_));
  json.Key("choices").BeginArray();
  for (size_t i = 0; i < choices_.size(); ++i) WriteChoice(i, choices_[i], &json);
  json.EndArray().NullField("service_tier");
  json.OptionalField("system_fingerprint", context_.fingerprint).Key("usage");
  WriteUsage(context_, usage, &json);
  WritePromptFields(&json);
  json.NullField("kv_transfer_params").EndObject();
  SendJson(*context_.response, json.Take());
}

void WholeAnswer::Fail(const absl::Status& error) {
  context_.response->Send(ToErrorResponse(error));
}

}  // namespace fulgur::server

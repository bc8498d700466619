// What answers in one piece have in common: gathering what the choices bring, and the outer object.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "server/answer.h"
#include "server/json_writer.h"

namespace fulgur::server {

class WholeAnswer : public Answer {
 public:
  WholeAnswer(AnswerContext context, std::string_view object);

  void Begin() override {}
  void SetPromptLogprobs(size_t prompt, PromptLogprobs logprobs) override;
  void Update(size_t choice, ChoiceUpdate update, const Usage& so_far) override;
  void End(const Usage& usage) override;
  void Fail(const absl::Status& error) override;

 protected:
  struct Choice {
    text::ParsedOutput output;  // raw text is all content
    std::vector<engine::OutputToken> tokens;
    ChoiceFinish finish;
  };

  virtual void WriteChoice(size_t index, const Choice& choice, JsonWriter* json) const = 0;

  // Fields of the outer object that only one kind of answer has.
  virtual void WritePromptFields(JsonWriter*) const {}

  const AnswerContext& context() const { return context_; }
  const PromptLogprobs& prompt_logprobs(size_t prompt) const { return prompt_logprobs_[prompt]; }

 private:
  AnswerContext context_;
  std::string head_;
  std::vector<Choice> choices_;
  std::vector<PromptLogprobs> prompt_logprobs_;  // by prompt
};

}  // namespace fulgur::server

// What streamed answers have in common: the event stream, grouping of tokens, usage, errors.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "server/answer.h"
#include "server/json_writer.h"

namespace fulgur::server {

class StreamAnswer : public Answer {
 public:
  StreamAnswer(AnswerContext context, std::string_view object);

  void Begin() override;
  void SetPromptLogprobs(size_t, PromptLogprobs) override {}  // refused with chat streams
  void Update(size_t choice, ChoiceUpdate update, const Usage& so_far) override;
  void End(const Usage& usage) override;
  void Fail(const absl::Status& error) override;
  void KeepAlive() override;

 protected:
  // Writes what has gathered for a choice as chunks; may write nothing if nothing is visible and
  // the update does not finish the choice. Returns false to keep tokens for the next chunk.
  virtual bool WriteUpdate(size_t choice, const ChoiceUpdate& update, const Usage& so_far) = 0;

  const AnswerContext& context() const { return context_; }

  // A chunk up to and without its "choices", and the end of one.
  JsonWriter BeginChunk() const { return JsonWriter(head_); }
  void WriteChunk(JsonWriter* json, const Usage& so_far);

 private:
  AnswerContext context_;
  std::string head_;
  bool started_ = false;

  struct Pending {
    ChoiceUpdate update;
    size_t new_tokens = 0;  // since the last chunk
    bool any_written = false;
  };
  std::vector<Pending> pending_;  // by choice
};

}  // namespace fulgur::server

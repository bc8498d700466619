// What a client gets for its job, in one of four shapes: chat or completion, streamed or whole.
//
// A Generation feeds an Answer with what the engine brings; the answer writes the published JSON.
// Network thread only.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "engine/engine.h"
#include "server/http.h"
#include "server/job.h"
#include "text/output_parser.h"

namespace fulgur::server {

struct Usage {
  int64_t prompt_tokens = 0;
  int64_t completion_tokens = 0;
  int64_t reasoning_tokens = 0;
  int64_t cached_tokens = 0;
};

struct ChoiceFinish {
  std::string_view reason;  // "stop", "length", "tool_calls", "abort"
  std::optional<std::string> stop_string;
  std::optional<int32_t> stop_token;  // one the client asked for, not an end-of-sequence token
};

// What one step brought to one choice.
struct ChoiceUpdate {
  std::vector<text::OutputDelta> deltas;
  std::vector<engine::OutputToken> tokens;
  std::optional<ChoiceFinish> finish;
};

using PromptLogprobs = std::vector<std::vector<engine::TokenLogprob>>;

class Answer {
 public:
  virtual ~Answer() = default;

  // The engine took the job: no more errors with a status of their own.
  virtual void Begin() = 0;
  virtual void SetPromptLogprobs(size_t prompt, PromptLogprobs logprobs) = 0;
  virtual void Update(size_t choice, ChoiceUpdate update, const Usage& so_far) = 0;
  virtual void End(const Usage& usage) = 0;  // every choice has finished
  virtual void Fail(const absl::Status& error) = 0;
  virtual void KeepAlive() {}  // called every now and then while nothing else is written
};

// What all chunks of an answer share. `job` and the pointers outlive the answer.
struct AnswerContext {
  std::string id;
  int64_t created = 0;  // Unix seconds
  std::string model;
  std::optional<std::string> fingerprint;
  const Job* job;
  const ServerOptions* options;
  const text::Tokenizer* tokenizer;  // null: no text
  std::shared_ptr<ResponseStream> response;

  const GenerationRequest& request() const { return job->request; }
  size_t num_choices() const { return static_cast<size_t>(job->num_choices()); }
  size_t prompt_of(size_t choice) const { return choice / static_cast<size_t>(job->request.n); }
};

std::unique_ptr<Answer> MakeChatAnswer(AnswerContext context);
std::unique_ptr<Answer> MakeCompletionAnswer(AnswerContext context);

}  // namespace fulgur::server

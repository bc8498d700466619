// Pieces of JSON that several answers share: usage, log probabilities, ids, and the SSE frame.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "server/answer.h"
#include "server/json_writer.h"

namespace fulgur::server {

// {"id","object","created","model"} of every answer, left open.
std::string AnswerHead(const AnswerContext& context, std::string_view object);

void WriteUsage(const AnswerContext& context, const Usage& usage, JsonWriter* json);
void WriteIds(const std::vector<int32_t>& ids, JsonWriter* json);
void WriteTokenIds(const std::vector<engine::OutputToken>& tokens, JsonWriter* json);

// The stop string or token that ended a choice, or null.
void WriteStopReason(const ChoiceFinish& finish, JsonWriter* json);

// {"content": [{token, logprob, bytes, top_logprobs}]}
void WriteChatLogprobs(const AnswerContext& context, const std::vector<engine::OutputToken>& tokens,
                       JsonWriter* json);

// {"text_offset", "token_logprobs", "tokens", "top_logprobs"}. Offsets count characters of the
// tokens' text from `*offset` on, which is moved forward.
class CompletionLogprobs {
 public:
  CompletionLogprobs(const AnswerContext& context, size_t offset)
      : context_(context), offset_(offset) {}
  void AddPrompt(const std::vector<int32_t>& prompt, const PromptLogprobs& logprobs);
  void Add(const engine::OutputToken& token);
  void Write(JsonWriter* json) const;
  size_t offset() const { return offset_; }

 private:
  struct Row {
    std::string token;
    size_t offset = 0;
    std::vector<engine::TokenLogprob> top;  // the token itself first; empty: nothing is known
  };
  void AddRow(int32_t token, std::vector<engine::TokenLogprob> top);

  const AnswerContext& context_;
  size_t offset_;
  std::vector<Row> rows_;
};

// [null, {id: {logprob, rank, decoded_token}}, ...]
void WritePromptLogprobs(const AnswerContext& context, const PromptLogprobs& logprobs,
                         JsonWriter* json);

// How a token is shown: its text, or "token_id:ID" if asked for or if there is no tokenizer.
std::string TokenText(const AnswerContext& context, int32_t token);

// Server-sent events.
HeaderList EventStreamHeaders();
std::string EventFrame(std::string_view json);  // "data: JSON" and an empty line
inline constexpr std::string_view kLastEvent = "data: [DONE]\n\n";
inline constexpr std::string_view kKeepAliveComment = ": ping\n\n";

// Sends a whole JSON answer.
void SendJson(ResponseStream& response, std::string body);

}  // namespace fulgur::server

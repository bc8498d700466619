#include "server/stream_answer.h"

#include <iterator>
#include <utility>

#include "server/answer_json.h"
#include "server/api_error.h"

namespace fulgur::server {

StreamAnswer::StreamAnswer(AnswerContext context, std::string_view object)
    : context_(std::move(context)),
      head_(AnswerHead(context_, object)),
      pending_(context_.num_choices()) {}

void StreamAnswer::Begin() {
  started_ = true;
  context_.response->Start(200, EventStreamHeaders());
}

void StreamAnswer::Update(size_t choice, ChoiceUpdate update, const Usage& so_far) {
  Pending& pending = pending_[choice];
  pending.new_tokens += update.tokens.size();
  auto append = [](auto& to, auto& from) {
    to.insert(to.end(), std::make_move_iterator(from.begin()), std::make_move_iterator(from.end()));
  };
  append(pending.update.deltas, update.deltas);
  append(pending.update.tokens, update.tokens);
  pending.update.finish = std::move(update.finish);

  auto interval = static_cast<size_t>(context_.request().stream_interval);
  bool due = !pending.any_written || pending.new_tokens >= interval || pending.update.finish;
  if (!due || !WriteUpdate(choice, pending.update, so_far)) return;
  pending.update = {};
  pending.new_tokens = 0;
  pending.any_written = true;
}

void StreamAnswer::WriteChunk(JsonWriter* json, const Usage& so_far) {
  if (context_.request().continuous_usage) {
    json->Key("usage");
    WriteUsage(context_, so_far, json);
  }
  json->EndObject();
  context_.response->Write(EventFrame(json->text()));
}

void StreamAnswer::End(const Usage& usage) {
  if (context_.request().include_usage) {
    JsonWriter json = BeginChunk();
    json.Key("choices").BeginArray().EndArray().Key("usage");
    WriteUsage(context_, usage, &json);
    json.OptionalField("system_fingerprint", context_.fingerprint).EndObject();
    context_.response->Write(EventFrame(json.text()));
  }
  context_.response->Write(kLastEvent);
  context_.response->Finish();
}

void StreamAnswer::Fail(const absl::Status& error) {
  if (!started_) return context_.response->Send(ToErrorResponse(error));
  context_.response->Write(EventFrame(ErrorBody(error)));
  context_.response->Write(kLastEvent);
  context_.response->Finish();
}

void StreamAnswer::KeepAlive() {
  if (started_) context_.response->Write(kKeepAliveComment);
}

}  // namespace fulgur::server

#include "bench/load/exchange.h"

#include <algorithm>
#include <utility>

#include "bench/load/clock.h"
#include "fmt/format.h"

namespace fulgur::bench {
namespace {

constexpr size_t kMaxErrorBytes = 2048;
constexpr size_t kMaxBodyBytes = 64 << 20;  // of an answer that is not streamed
constexpr int kCancelledCode = 499;         // aiperf's
constexpr int kOk = 200;

}  // namespace

Exchange::Exchange(RequestRecord record, bool streaming, AnswerReader& reader, Callbacks callbacks)
    : record_(std::move(record)),
      streaming_(streaming),
      reader_(reader),
      callbacks_(std::move(callbacks)),
      messages_([this](std::string_view data, int64_t arrival_ns) {
        reader_.ReadMessage(data, arrival_ns, answer_);
      }) {}

void Exchange::OnStart(int64_t time_ns, bool repeated) {
  record_.start_ns = time_ns;
  record_.wall_start_ns = WallNs();
  repeated_ = repeated;
}

void Exchange::OnHeaders(int status, std::string_view reason, std::string_view content_type,
                         int64_t time_ns) {
  status_ = status;
  reason_ = reason;
  record_.ack_ns = time_ns;
  // A server that forgets the type of its stream is still understood.
  is_stream_ = streaming_ && status == kOk && !content_type.starts_with("application/json");
}

void Exchange::OnBody(std::string_view piece, int64_t time_ns) {
  last_byte_ns_ = time_ns;
  if (!is_stream_) {
    const size_t room = status_ == kOk ? kMaxBodyBytes : kMaxErrorBytes;
    body_ += piece.substr(0, room - std::min(room, body_.size()));
    return;
  }
  const size_t before = answer_.frames.size();
  messages_.Feed(piece, time_ns);
  NoteOutput(before);
}

void Exchange::NoteOutput(size_t frames_before) {
  for (size_t i = frames_before; i < answer_.frames.size(); ++i) {
    const Frame& frame = answer_.frames[i];
    if (!frame.is_output()) continue;
    if (!has_output_ && callbacks_.on_first_output) callbacks_.on_first_output(frame.arrival_ns);
    has_output_ = true;
    if (callbacks_.on_output) callbacks_.on_output(frame.tokens.value_or(1));
  }
}

std::optional<RequestError> Exchange::JudgeAnswer() const {
  if (status_ != kOk) return RequestError{status_, reason_, body_};
  if (answer_.error) {
    return RequestError{std::nullopt, "ErrorInStream", answer_.error->substr(0, kMaxErrorBytes)};
  }
  if (answer_.unreadable > 0 && !has_output_) {
    return RequestError{std::nullopt, "InvalidInferenceResultError",
                        "the answer is not the JSON of the OpenAI API"};
  }
  if (is_stream_ && !answer_.done && !answer_.finished && has_output_) {
    return RequestError{std::nullopt, "ClientPayloadError",
                        "the stream ended without a finish reason and without [DONE]"};
  }
  if (!has_output_) {
    return RequestError{std::nullopt, "InvalidInferenceResultError", "the answer has no content"};
  }
  return std::nullopt;
}

std::optional<RequestError> Exchange::Judge(const CallEnd& end) const {
  switch (end.outcome) {
    case CallOutcome::kComplete:
      return JudgeAnswer();
    case CallOutcome::kConnectFailed:
      return RequestError{std::nullopt, "ClientConnectorError", end.detail};
    case CallOutcome::kClosed:
      return RequestError{std::nullopt, "ClientPayloadError", end.detail};
    case CallOutcome::kGarbage:
      return RequestError{std::nullopt, "ClientResponseError",
                          fmt::format("the answer is no HTTP: {}", end.detail)};
    case CallOutcome::kTimedOut:
      return RequestError{std::nullopt, "TimeoutError", "the answer did not end in time"};
    case CallOutcome::kCancelled:
      return RequestError{kCancelledCode, "RequestCancellationError", "cancelled by the client"};
  }
  return std::nullopt;
}

void Exchange::OnEnd(const CallEnd& end) {
  const size_t before = answer_.frames.size();
  if (is_stream_) {
    messages_.Finish();
  } else if (end.outcome == CallOutcome::kComplete && status_ == kOk) {
    reader_.ReadWhole(body_, last_byte_ns_, answer_);
  }
  NoteOutput(before);
  record_.end_ns = end.time_ns;
  if (record_.start_ns == 0) {  // never got a connection
    record_.start_ns = record_.end_ns;
    record_.wall_start_ns = WallNs();
  }
  record_.error = Judge(end);
  record_.cancelled = end.outcome == CallOutcome::kCancelled;
  record_.frames = std::move(answer_.frames);
  record_.usage = answer_.usage;
  FinishedRequest finished{std::move(record_), std::move(answer_.text),
                           std::move(answer_.reasoning), messages_.comments(), repeated_};
  const auto on_end = std::move(callbacks_.on_end);
  on_end(std::move(finished));
}

}  // namespace fulgur::bench

// What is known of one benchmark request: when each message of its answer arrived and what it
// carried.
//
// All times are nanoseconds of CLOCK_MONOTONIC; `wall_start_ns` (CLOCK_REALTIME at the start) joins
// runs of several hosts. The event model and the names of metrics are aiperf's
// (github.com/ai-dynamo/aiperf).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace fulgur::bench {

enum class FrameKind {
  kRole,
  kContent,
  kReasoning,
  kTool,
  kUsage,
  kFinish,
  kDone,
  kComment,
  kError
};

// One server-sent event, or the whole body of an answer that is not streamed.
struct Frame {
  int64_t arrival_ns = 0;  // when the read that delivered its first byte returned
  FrameKind kind = FrameKind::kContent;
  std::optional<int64_t> tokens;  // carried by this frame, if the server or a tokenizer says so

  // Frames that a user sees: they start and end the clocks.
  bool is_output() const {
    return kind == FrameKind::kContent || kind == FrameKind::kReasoning || kind == FrameKind::kTool;
  }
};

// The last usage object of an answer; absent fields were not sent.
struct Usage {
  std::optional<int64_t> prompt_tokens;
  std::optional<int64_t> completion_tokens;
  std::optional<int64_t> reasoning_tokens;
  std::optional<int64_t> cached_tokens;
};

struct RequestError {
  std::optional<int> code;  // the HTTP status, 499 for cancelled; absent if there was no answer
  std::string type;         // the reason phrase, or the kind of failure
  std::string message;      // the first part of the body, or what happened
};

struct RequestRecord {
  int64_t session = 0;  // position in the plan of its phase
  int32_t turn = 0;     // of a multi-turn session
  bool warmup = false;  // excluded from results
  bool cancelled = false;
  std::string request_id;  // X-Request-ID
  std::string conversation_id;

  int64_t scheduled_ns = 0;  // when the plan wanted to send
  int64_t start_ns = 0;      // just before the first byte went to the socket
  int64_t wall_start_ns = 0;
  int64_t ack_ns = 0;  // the status line and headers were complete; 0: never
  int64_t end_ns = 0;  // the last byte
  std::vector<Frame> frames;

  std::optional<int64_t> input_tokens;
  std::optional<int64_t> output_tokens;  // visible and reasoning
  std::optional<int64_t> reasoning_tokens;
  std::optional<int64_t> requested_output_tokens;
  std::optional<double> output_repetition;  // part of the answer's word runs that came before
  Usage usage;
  std::string text;  // kept only when asked for
  std::optional<RequestError> error;

  bool valid() const { return !error.has_value() && !cancelled && !warmup; }
};

}  // namespace fulgur::bench

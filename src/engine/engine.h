// The engine as the server sees it: requests of token ids in, events of token ids out.
//
// Thread rules: Submit, Abort and Health may be called from any thread. A request's sink is called
// from the engine's thread only, in order, and must not block; the last event of a request carries
// a finish reason. Tokenising, parsing and stop strings are the server's work: the engine sees
// token ids only.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "sample/sampling_params.h"

namespace fulgur::engine {

using RequestId = uint64_t;

enum class FinishReason {
  kStop,    // an end-of-sequence or stop token
  kLength,  // max_tokens, or the end of the context
  kAbort,   // Abort() or shutdown
  kError,   // the engine failed; `error` says how
};

struct TokenLogprob {
  int32_t token = 0;
  float logprob = 0.0F;
  int32_t rank = 0;  // 1: the most probable
};

struct OutputToken {
  int32_t token = 0;
  std::optional<TokenLogprob> logprob;     // of this token, when asked for
  std::vector<TokenLogprob> alternatives;  // the most probable ones, best first
};

struct RequestEvent {
  std::vector<OutputToken> tokens;  // new tokens, in order; the stop token itself is included
  std::optional<FinishReason> finish;
  std::optional<int32_t> stop_token;  // the token that ended it, if finish is kStop
  std::string error;                  // one sentence, if finish is kError

  // Once, with the first event of a request that asked for it. Entry 0 has no probability and is
  // left empty.
  std::vector<std::vector<TokenLogprob>> prompt_logprobs;
  int64_t num_cached_tokens = 0;  // prompt tokens that were not computed again
};

using EventSink = std::function<void(RequestEvent)>;

struct Request {
  std::vector<int32_t> prompt;  // at least one token
  sample::SamplingParams params;
  int32_t priority = 0;  // lower runs first, if the engine schedules by priority
  // Text that a scripted engine matches on: the last user message. The model engine ignores it.
  std::string script_key;
};

struct EngineStats {
  int64_t num_running = 0;
  int64_t num_waiting = 0;
  int64_t pages_total = 0;
  int64_t pages_used = 0;
  int64_t slots_used = 0;
  int64_t num_preemptions = 0;        // since start
  int64_t prompt_tokens = 0;          // since start
  int64_t generation_tokens = 0;      // since start
  int64_t prefix_queries_tokens = 0;  // since start
  int64_t prefix_hits_tokens = 0;     // since start
  int64_t num_steps = 0;
};

class Engine {
 public:
  virtual ~Engine() = default;

  // Queues a request. Refuses at once, with the numbers, what can never run: a prompt or prompt +
  // max_tokens over the context (kInvalidArgument), memory that the whole machine lacks
  // (kResourceExhausted), a dead or closing engine (kUnavailable).
  virtual absl::StatusOr<RequestId> Submit(Request request, EventSink sink) = 0;

  // Ends a request; its memory is free at the next step and its last event says kAbort. Unknown ids
  // are ignored: the request may just have finished.
  virtual void Abort(RequestId id) = 0;

  // OK, or why the engine is dead. A dead engine never recovers: the process should exit.
  virtual absl::Status Health() const = 0;

  virtual EngineStats Stats() const = 0;

  // The longest prompt + output, and the number of token ids the model knows.
  virtual int64_t MaxModelLen() const = 0;
  virtual int64_t VocabSize() const = 0;

  // Finishes (drain) or aborts what runs, then stops. Submit refuses from the first moment on.
  virtual void Shutdown(bool drain) = 0;
};

}  // namespace fulgur::engine

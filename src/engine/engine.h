// The engine as the server sees it: requests of token ids in, events of token ids out.
//
// Thread rules: Submit, Abort and Health may be called from any thread. A request's sink is called
// from the engine's thread only, in order, and must not block; the last event of a request carries
// a finish reason. Tokenising, parsing and stop strings are the server's work: the engine sees
// token ids only.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "sample/logprobs.h"
#include "sample/sampling_params.h"
#include "sample/token_constraint.h"
#include "sched/survival_model.h"

namespace fulgur::engine {

using RequestId = uint64_t;
using Clock = std::chrono::steady_clock;
using sample::TokenLogprob;

enum class FinishReason {
  kStop,    // an end-of-sequence or stop token
  kLength,  // max_tokens, or the end of the context
  kAbort,   // Abort() or shutdown
  kError,   // the engine failed; `error` says how
};

struct OutputToken {
  int32_t token = 0;
  std::optional<TokenLogprob> logprob;     // of this token, when asked for
  std::vector<TokenLogprob> alternatives;  // the most probable ones, best first
};

// What became of a request, for metrics. Times that never came are unset.
struct RequestRecord {
  Clock::time_point submitted;
  std::optional<Clock::time_point> scheduled;    // first part of the prompt computed
  std::optional<Clock::time_point> first_token;  // end of the prefill
  std::optional<Clock::time_point> last_token;
  Clock::time_point finished;
  int64_t num_prompt_tokens = 0;
  int64_t num_output_tokens = 0;
  int64_t num_computed_prompt_tokens = 0;  // the rest came from a cache
  int64_t num_preemptions = 0;
};

struct RequestEvent {
  std::vector<OutputToken> tokens;  // new tokens, in order; the stop token itself is included
  std::optional<FinishReason> finish;
  std::optional<int32_t> stop_token;  // the token that ended it, if finish is kStop
  std::string error;                  // one sentence, if finish is kError

  // Once, with the first event of a request that asked for it: one entry per prompt token, the
  // token itself first, then the most probable ones, best first. Entry 0 has no probability and is
  // left empty.
  std::vector<std::vector<TokenLogprob>> prompt_logprobs;
  int64_t num_cached_tokens = 0;  // prompt tokens that were not computed again

  Clock::time_point time;               // when the step that made it ended
  std::optional<RequestRecord> record;  // with the last event
  // A scripted engine only, with the last event (kAbort): the script wants the connection to break.
  bool disconnect = false;
};

using EventSink = std::function<void(RequestEvent)>;

struct Request {
  std::vector<int32_t> prompt;  // at least one token
  sample::SamplingParams params;
  // The format that the answer must have; null: any. Of this request alone.
  std::shared_ptr<sample::TokenConstraint> constraint;
  int32_t priority = 0;  // lower runs first, if the engine schedules by priority
  // The most drafts of a step, below the engine's own number; 0: none. Without one the engine
  // decides. Never changes the answer under exact-match verification.
  std::optional<int32_t> max_drafts;
  // Text that a scripted engine matches on: the last user message. The model engine ignores it.
  std::string script_key;
  std::optional<Clock::time_point> deadline;  // aborted if it has not finished by then
};

// Upper bounds of the buckets of step sizes (vLLM's iteration_tokens_total); a last one is open.
inline constexpr std::array<int64_t, 13> kStepTokenBounds = {1,   8,    16,   32,   64,   128,  256,
                                                             512, 1024, 2048, 4096, 8192, 16384};

// Speculative decoding since start, unless said otherwise. A round: one request's drafts in a step.
struct SpeculationStats {
  enum class Method { kNone, kMtp, kDspark };
  enum class Mode { kOff, kOn, kProbe };

  Method method = Method::kNone;
  bool adaptive = false;
  int32_t num_drafts = 0;  // the most per round
  Mode mode = Mode::kOff;  // of the latest step that decoded
  double gain = 1.0;       // its predicted tokens per time, relative to decoding without drafts

  int64_t rounds = 0;            // with at least one draft verified
  int64_t proposed_tokens = 0;   // drafts made
  int64_t verified_tokens = 0;   // drafts in forward passes
  int64_t accepted_tokens = 0;   // drafts that stood and were said
  int64_t discarded_tokens = 0;  // verified behind the end of an answer
  std::array<int64_t, sched::kMaxDrafts> verified_per_slot = {};
  std::array<int64_t, sched::kMaxDrafts> accepted_per_slot = {};
  std::array<int64_t, 3> steps = {};  // that decoded, by mode
  int64_t planned_tokens = 0;         // drafts worth verifying, by earlier steps
  int64_t undrafted_rounds = 0;       // requests that decoded without drafts at hand
  double predicted_accepted = 0.0;    // beside accepted_tokens: how well chances are known
  std::array<double, sched::kMaxDrafts> calibration_error = {};  // of late, by slot
  double predicted_forward_seconds = 0.0;
  double forward_seconds = 0.0;
  double draft_seconds = 0.0;
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

  int64_t waiting_prompt_tokens = 0;  // of the requests that wait
  // Finished since start: [FinishReason].
  std::array<int64_t, 4> num_finished = {};
  int64_t num_bad_logits = 0;                                         // requests ended by NaN
  std::array<int64_t, kStepTokenBounds.size() + 1> step_tokens = {};  // steps per bucket
  int64_t step_tokens_sum = 0;                                        // tokens of all steps
  SpeculationStats speculation;
  double seconds_in_step = 0.0;  // how long the step now running has taken; 0 between steps
};

class Engine {
 public:
  virtual ~Engine() = default;

  // Queues a request. Refuses at once, with the numbers, what can never run: a prompt or prompt +
  // max_tokens over the context (kInvalidArgument), memory that the whole machine lacks
  // (kResourceExhausted), a dead, closing or overfull engine (kUnavailable).
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

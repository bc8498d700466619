// The engine without its thread: requests become sequences, each step runs the model over what the
// scheduler planned, and logits become tokens and events.
//
// One thread, except CheckRequest. A step does not allocate after warm-up but for the events that
// leave it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine/active_request.h"
#include "engine/engine.h"
#include "engine/model_runner.h"
#include "engine/speculation.h"
#include "kv/page_pool.h"
#include "model/step_batch.h"
#include "sample/verifier.h"
#include "sched/scheduler.h"

namespace fulgur::engine {

struct CoreOptions {
  sched::SchedulerLimits limits;
  int64_t num_pages = 0;  // of 256 tokens; the runner's cache must have as many
  int64_t num_slots = 0;  // at least limits.max_num_seqs
  std::vector<int32_t> eos_tokens = {};
  // Requests that bring no seed get theirs from this number, or from the system.
  std::optional<uint64_t> seed = std::nullopt;
  SpeculationOptions speculation = {};
};

// Errors name the option that is wrong.
absl::Status ValidateOptions(const CoreOptions& options, const ModelRunner& runner);

class EngineCore {
 public:
  // The options must be valid; the runner must outlive the core.
  EngineCore(const CoreOptions& options, ModelRunner& runner);
  ~EngineCore();

  // Whether the request could ever run. Any thread.
  absl::Status CheckRequest(const Request& request) const;

  // Queues a request that passed the check.
  void Add(RequestId id, Request request, EventSink sink, Clock::time_point submitted);
  // Unknown ids are ignored. The request ends in the next step.
  void Abort(RequestId id);
  // Ends all requests now.
  void EndAll(FinishReason reason, const std::string& error);

  bool HasWork() const { return scheduler_.HasWork(); }

  // Plans and runs one step, sends its events, frees what ended. After an error the core is only
  // good for EndAll.
  absl::Status Step();

  EngineStats Stats() const;
  int64_t vocab_size() const { return vocab_size_; }
  const CoreOptions& options() const { return options_; }
  // Aborts if memory and requests contradict each other. For tests: linear.
  void CheckInvariants() const { scheduler_.CheckInvariants(); }

 private:
  uint64_t DrawSeed(RequestId id) const;

  void EndReaped(const sched::StepPlan& plan);
  void BuildBatch(const sched::StepPlan& plan);
  absl::Status RunModel(const sched::StepPlan& plan);
  void ReadLogits(const sched::StepPlan& plan);
  void CountStep(const sched::StepPlan& plan);

  void CollectPromptLogprobs(ActiveRequest& request, const sched::ScheduledChunk& chunk,
                             std::span<const float> rows);
  // Both return whether the request goes on.
  bool SayTokens(ActiveRequest& request, const sched::ScheduledChunk& chunk,
                 std::span<const float> rows);
  bool SendTokens(ActiveRequest& request, RequestEvent event);
  absl::StatusOr<sample::Verdict> Judge(const ActiveRequest& request, int32_t row,
                                        int32_t num_drafts, std::span<const float> logits,
                                        std::optional<int32_t> decreed);
  void Append(ActiveRequest& request, int32_t token, std::span<const float> row,
              RequestEvent& event);
  OutputToken Describe(const ActiveRequest& request, int32_t token,
                       std::span<const float> row) const;
  void End(ActiveRequest& request, RequestEvent event);

  const CoreOptions options_;
  ModelRunner& runner_;
  const int64_t vocab_size_;
  const uint64_t base_seed_;
  kv::PagePool pages_;
  kv::SlotPool slots_;
  sample::Verifier verifier_;
  std::unique_ptr<Speculation> speculation_;  // null: off
  sched::Scheduler scheduler_;
  absl::flat_hash_map<RequestId, std::unique_ptr<ActiveRequest>> requests_;

  std::vector<int32_t> batch_tokens_;                 // [T]
  std::vector<model::SequenceRows> batch_sequences_;  // [S]
  std::vector<float> logits_;                         // [max logit rows, V]
  Clock::time_point now_;                             // end of the latest forward pass
  EngineStats totals_;                                // what is counted since start
};

}  // namespace fulgur::engine

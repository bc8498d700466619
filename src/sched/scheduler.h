// Decides which tokens of which sequences the next step computes, and which memory they use.
//
// There is no prefill or decode phase: a step closes each sequence's gap between computed and known
// tokens, within a budget of tokens. Gaps of one (decodes) always come first, so a long prompt
// delays others by no more than its chunk. Sequences are kept in one order - priority, then arrival
// - by which the budget is dealt out, waiting ones are admitted, and victims of preemption are
// chosen from the end. Given the same calls, the plans are the same.
//
// Memory: a sequence is admitted when the pages of all tokens it has fit, and then holds them, so
// half-computed prompts cannot block each other; some pages stay free for the output of those that
// run (the watermark). A running sequence that finds no page takes those of the last in the order,
// which starts again later from its tokens.
//
// Drafts: behind the last token of a decoding sequence a step may verify some of its drafts; how
// many is a policy's decision. They come before prompts, since a prompt would always take all, but
// never cost a page that is not free.
//
// Knows no tensor and no clock. One thread; sequences are owned by the caller and must stay in
// place until finished.
#pragma once

#include <cstdint>
#include <deque>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "kv/page_pool.h"
#include "sched/sequence.h"
#include "sched/verify_planner.h"

namespace fulgur::sched {

enum class Policy { kFcfs, kPriority };

struct SchedulerLimits {
  int64_t max_num_seqs = 64;              // running at once
  int64_t max_num_batched_tokens = 2048;  // of one step
  int64_t max_model_len = 0;
  int64_t max_logit_rows = 0;  // of one step; more than max_num_seqs
  Policy policy = Policy::kFcfs;
  bool chunked_prefill = true;  // false: a prompt is computed in one step
  // While several prompts want to be computed, none gets more tokens of a step than this. 0: no
  // limit.
  int64_t long_prefill_token_threshold = 0;
  // Prompts that are computed in part at once; later ones wait. 0: no limit. More than one without
  // a threshold sets that to 4 % of max_model_len, as vLLM does.
  int64_t max_num_partial_prefills = 0;
  // Share of the pages that admission leaves for the output of running sequences.
  double watermark = 0.01;
};

// Errors name the limit (as the flag is called), its value and what is accepted.
absl::Status ValidateLimits(const SchedulerLimits& limits);

// Tokens [first_position, first_position + num_tokens) of a sequence, then the first num_drafts of
// its drafts; the last num_logit_rows of these rows want logits. If its tokens end at the last
// known one, the next one can be sampled.
struct ScheduledChunk {
  Sequence* sequence = nullptr;
  int64_t first_position = 0;
  int32_t num_tokens = 0;
  int32_t num_drafts = 0;
  int32_t num_logit_rows = 0;
  bool samples = false;

  int32_t num_rows() const { return num_tokens + num_drafts; }
};

struct StepPlan {
  std::vector<ScheduledChunk> chunks;
  std::vector<Sequence*> reaped;     // ended here: aborted, or past the deadline
  std::vector<Sequence*> preempted;  // lost their memory, and wait again
  int64_t num_tokens = 0;            // drafts included
  int64_t num_logit_rows = 0;
};

// Decides how many drafts a step verifies.
class DraftPolicy {
 public:
  virtual ~DraftPolicy() = default;
  // Called once per step, also if nothing decodes. `decodes` have one token each; sets their
  // num_drafts: no more than the sequence has, and outlook.max_draft_rows in all.
  virtual void PlanDrafts(const StepOutlook& outlook, std::span<ScheduledChunk> decodes) = 0;
};

class Scheduler {
 public:
  // The pools and the policy must outlive the scheduler. The limits must be valid. Without a policy
  // there must be no drafts.
  Scheduler(const SchedulerLimits& limits, kv::PagePool& pages, kv::SlotPool& slots,
            DraftPolicy* policy = nullptr);

  // kResourceExhausted, with the numbers, if a sequence of this length could never run.
  absl::Status CheckFits(int64_t max_length) const;

  // Queues a sequence that fits.
  void Add(Sequence* sequence);
  // It will be among the next plan's reaped ones.
  void Abort(Sequence* sequence);
  // Frees the memory of a running or waiting sequence and forgets it.
  void Finish(Sequence* sequence);

  // Plans a step and counts its tokens as computed. The plan is valid until the next call. The
  // engine then appends the sampled tokens and calls Finish for those that end.
  const StepPlan& Plan(Clock::time_point now);

  const SchedulerLimits& limits() const { return limits_; }
  const std::vector<Sequence*>& running() const { return running_; }
  const std::deque<Sequence*>& waiting() const { return waiting_; }
  bool HasWork() const { return !running_.empty() || !waiting_.empty(); }
  // The earliest deadline of all sequences, or max().
  Clock::time_point next_deadline() const { return next_deadline_; }
  int64_t num_preemptions() const { return num_preemptions_; }

  // Aborts if sequences, pages and slots contradict each other. For tests: linear.
  void CheckInvariants() const;

 private:
  // What is left to deal out in this step.
  struct Budget {
    int64_t tokens = 0;
    int64_t extra_logit_rows = 0;  // beyond the one of each sequence
    int64_t partial_prefills = 0;
  };

  // The phases of Plan, in order.
  void Reap(Clock::time_point now);
  void GrowDecodes(Budget& budget);  // may preempt the last ones
  void PlanVerification(Budget& budget);
  void GrowPrompts(Budget& budget);
  void AdmitWaiting(Budget& budget);

  bool ReapIfEnded(Sequence* sequence, Clock::time_point now);
  bool EnsurePage(Sequence* sequence);
  StepOutlook LookAhead(const Budget& budget) const;
  int32_t DraftsThatFit(const ScheduledChunk& chunk, const Budget& budget);
  void Preempt(Sequence* victim);
  bool HasMemoryFor(const Sequence& sequence) const;
  void TakeMemory(Sequence* sequence);
  void FreeMemory(Sequence* sequence);
  int64_t PrefillChunk(const Sequence& sequence, const Budget& budget) const;
  void Schedule(Sequence* sequence, int64_t num_tokens, Budget& budget);

  bool Before(const Sequence* a, const Sequence* b) const;
  template <typename List>
  void Insert(List& list, Sequence* sequence);
  template <typename List>
  static void Remove(List& list, Sequence* sequence);

  const SchedulerLimits limits_;  // with the threshold that follows from them
  const int64_t watermark_pages_;
  kv::PagePool& pages_;
  kv::SlotPool& slots_;
  DraftPolicy* const policy_;
  std::vector<Sequence*> running_;  // in order
  std::deque<Sequence*> waiting_;   // in order
  StepPlan plan_;
  bool any_aborted_ = false;
  Clock::time_point next_deadline_ = Clock::time_point::max();
  int64_t num_prefilling_ = 0;  // prompts that want tokens in this step
  uint64_t next_arrival_ = 0;
  int64_t num_preemptions_ = 0;
};

}  // namespace fulgur::sched

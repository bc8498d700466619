#include "sched/scheduler.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_format.h"
#include "base/check.h"
#include "kv/layout.h"

namespace fulgur::sched {
namespace {

using kv::Layout;

// The last token of a sequence is never computed, so it needs no row.
int64_t PagesOfLife(int64_t max_length) { return Layout::PagesFor(max_length - 1); }

int64_t NumPages(const Sequence& sequence) { return static_cast<int64_t>(sequence.pages.size()); }

// Pages that the output may still need.
int64_t PagesToGrow(const Sequence& sequence) {
  const int64_t held = std::max(NumPages(sequence), Layout::PagesFor(sequence.length()));
  return std::max<int64_t>(0, PagesOfLife(sequence.max_length) - held);
}

SchedulerLimits WithThreshold(SchedulerLimits limits) {
  if (limits.max_num_partial_prefills > 1 && limits.long_prefill_token_threshold == 0) {
    limits.long_prefill_token_threshold = std::max<int64_t>(1, limits.max_model_len / 25);
  }
  return limits;
}

absl::Status AtLeast(const char* flag, int64_t value, int64_t least, const char* why) {
  if (value >= least) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrFormat("%s is %d, but must be at least %d%s", flag, value, least, why));
}

}  // namespace

absl::Status ValidateLimits(const SchedulerLimits& limits) {
  absl::Status status;
  status.Update(AtLeast("--max-num-seqs", limits.max_num_seqs, 1, ""));
  status.Update(AtLeast("--max-model-len", limits.max_model_len, 2, ": a prompt and an answer"));
  status.Update(AtLeast("--max-num-batched-tokens", limits.max_num_batched_tokens,
                        limits.max_num_seqs,
                        " (--max-num-seqs), so that every running sequence gets its next token"));
  if (!limits.chunked_prefill) {
    status.Update(
        AtLeast("--max-num-batched-tokens", limits.max_num_batched_tokens, limits.max_model_len,
                " (--max-model-len) without chunked prefill, since a prompt must fit into "
                "one step"));
  }
  status.Update(AtLeast("--long-prefill-token-threshold", limits.long_prefill_token_threshold, 0,
                        "; 0 means no limit"));
  status.Update(AtLeast("--max-num-partial-prefills", limits.max_num_partial_prefills, 0,
                        "; 0 means no limit"));
  if (!(limits.watermark >= 0.0 && limits.watermark < 1.0)) {
    status.Update(absl::InvalidArgumentError(absl::StrFormat(
        "--watermark is %g, but must be a share of the pages in [0, 1)", limits.watermark)));
  }
  return status;
}

Scheduler::Scheduler(const SchedulerLimits& limits, kv::PagePool& pages, kv::SlotPool& slots,
                     DraftPolicy* policy)
    : limits_(WithThreshold(limits)),
      watermark_pages_(static_cast<int64_t>(
          std::ceil(limits.watermark * static_cast<double>(pages.num_pages())))),
      pages_(pages),
      slots_(slots),
      policy_(policy) {
  CHECK_GT(limits.max_logit_rows, limits.max_num_seqs);
  CHECK_GE(slots.num_slots(), limits.max_num_seqs);
  const auto most = static_cast<size_t>(limits.max_num_seqs);
  running_.reserve(most);
  plan_.chunks.reserve(most);
  plan_.preempted.reserve(most);
}

absl::Status Scheduler::CheckFits(int64_t max_length) const {
  const int64_t needed = PagesOfLife(max_length);
  if (needed <= pages_.num_pages()) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrFormat(
      "a prompt and answer of up to %d tokens need %d cache pages of %d tokens, but the server has "
      "%d in all; ask for fewer tokens, or give the server more --kv-cache-memory-bytes",
      max_length, needed, kv::kPageTokens, pages_.num_pages()));
}

void Scheduler::Add(Sequence* sequence) {
  CHECK(sequence->state == SequenceState::kNew);
  CHECK_GT(sequence->length(), 0);
  CHECK_LT(sequence->length(), sequence->max_length);
  CHECK_LE(PagesOfLife(sequence->max_length), pages_.num_pages());
  sequence->arrival = next_arrival_++;
  sequence->state = SequenceState::kWaiting;
  if (sequence->deadline) next_deadline_ = std::min(next_deadline_, *sequence->deadline);
  Insert(waiting_, sequence);
}

void Scheduler::Abort(Sequence* sequence) {
  sequence->aborted = true;
  any_aborted_ = true;
}

void Scheduler::Finish(Sequence* sequence) {
  if (sequence->state == SequenceState::kRunning) {
    Remove(running_, sequence);
    FreeMemory(sequence);
  } else if (sequence->state == SequenceState::kWaiting) {
    Remove(waiting_, sequence);
  }
  sequence->state = SequenceState::kFinished;
}

const StepPlan& Scheduler::Plan(Clock::time_point now) {
  plan_.chunks.clear();
  plan_.reaped.clear();
  plan_.preempted.clear();
  plan_.num_tokens = 0;
  plan_.num_logit_rows = 0;
  Budget budget{.tokens = limits_.max_num_batched_tokens,
                .extra_logit_rows = limits_.max_logit_rows - limits_.max_num_seqs};
  Reap(now);
  GrowDecodes(budget);
  PlanVerification(budget);
  GrowPrompts(budget);
  if (plan_.preempted.empty()) AdmitWaiting(budget);
  for (const ScheduledChunk& chunk : plan_.chunks) chunk.sequence->num_computed += chunk.num_tokens;
  return plan_;
}

void Scheduler::Reap(Clock::time_point now) {
  if (!any_aborted_ && now < next_deadline_) return;
  any_aborted_ = false;
  next_deadline_ = Clock::time_point::max();
  std::erase_if(running_, [&](Sequence* sequence) { return ReapIfEnded(sequence, now); });
  std::erase_if(waiting_, [&](Sequence* sequence) { return ReapIfEnded(sequence, now); });
}

bool Scheduler::ReapIfEnded(Sequence* sequence, Clock::time_point now) {
  const bool late = sequence->deadline && *sequence->deadline <= now;
  if (!late && !sequence->aborted) {
    if (sequence->deadline) next_deadline_ = std::min(next_deadline_, *sequence->deadline);
    return false;
  }
  if (sequence->state == SequenceState::kRunning) FreeMemory(sequence);
  sequence->state = SequenceState::kFinished;
  plan_.reaped.push_back(sequence);
  return true;
}

void Scheduler::GrowDecodes(Budget& budget) {
  // Gaps of one first. A victim is never before the sequence that needs its page, so nothing that
  // was scheduled has to be taken back, and running_ only shrinks at its end.
  for (size_t i = 0; i < running_.size(); ++i) {
    Sequence* sequence = running_[i];
    if (sequence->remaining() == 1 && EnsurePage(sequence)) Schedule(sequence, 1, budget);
  }
}

void Scheduler::PlanVerification(Budget& budget) {
  if (policy_ == nullptr) return;
  policy_->PlanDrafts(LookAhead(budget), plan_.chunks);
  for (ScheduledChunk& chunk : plan_.chunks) {
    chunk.num_drafts = DraftsThatFit(chunk, budget);
    chunk.num_logit_rows += chunk.num_drafts;
    budget.tokens -= chunk.num_drafts;
    budget.extra_logit_rows -= chunk.num_drafts;
    plan_.num_tokens += chunk.num_drafts;
    plan_.num_logit_rows += chunk.num_drafts;
  }
}

// What the step is going to hold besides the decodes, nearly: whether waiting ones find memory is
// not looked at.
StepOutlook Scheduler::LookAhead(const Budget& budget) const {
  StepOutlook outlook;
  int64_t left = budget.tokens;
  bool wants_prompt_logits = false;
  const auto add = [&](const Sequence& sequence) {
    const int64_t rows = std::min(left, sequence.remaining());
    outlook.other_rows += rows;
    outlook.other_context += rows * (sequence.num_computed + rows / 2);
    left -= rows;
    wants_prompt_logits |= sequence.logits_from < sequence.length();
  };
  for (const Sequence* sequence : running_) {
    if (sequence->remaining() > 1) add(*sequence);
  }
  auto seats = limits_.max_num_seqs - static_cast<int64_t>(running_.size());
  for (auto next = waiting_.begin(); next != waiting_.end() && seats > 0 && left > 0; ++next) {
    add(**next);
    --seats;
  }
  // Drafts come in every step, so prompts keep half of what there is, or they might never start.
  const int64_t kept = limits_.chunked_prefill ? std::min(outlook.other_rows, budget.tokens / 2)
                                               : outlook.other_rows;
  const int64_t logit_rows =
      wants_prompt_logits ? budget.extra_logit_rows / 2 : budget.extra_logit_rows;
  outlook.max_draft_rows = std::max<int64_t>(0, std::min(budget.tokens - kept, logit_rows));
  return outlook;
}

// Takes the pages that the drafts need, as far as there are free ones.
int32_t Scheduler::DraftsThatFit(const ScheduledChunk& chunk, const Budget& budget) {
  Sequence* sequence = chunk.sequence;
  const int64_t wanted = std::min<int64_t>(
      {chunk.num_drafts, static_cast<int64_t>(sequence->drafts.size()), budget.tokens,
       budget.extra_logit_rows, sequence->max_length - 1 - sequence->length()});
  if (wanted <= 0) return 0;
  const int64_t end = chunk.first_position + 1 + wanted;
  while (NumPages(*sequence) < Layout::PagesFor(end) && pages_.num_free() > 0) {
    sequence->pages.push_back(*pages_.Allocate());
  }
  const int64_t last = std::min(end, NumPages(*sequence) * kv::kPageTokens);
  return static_cast<int32_t>(last - chunk.first_position - 1);
}

void Scheduler::GrowPrompts(Budget& budget) {
  const auto in_prefill = [](const Sequence* sequence) { return sequence->remaining() > 1; };
  const auto prefilling = std::count_if(running_.begin(), running_.end(), in_prefill);
  num_prefilling_ = prefilling + static_cast<int64_t>(waiting_.size());
  for (Sequence* sequence : running_) {
    if (!in_prefill(sequence)) continue;
    const int64_t chunk = PrefillChunk(*sequence, budget);
    if (chunk < sequence->remaining()) ++budget.partial_prefills;
    if (chunk > 0) Schedule(sequence, chunk, budget);
  }
}

bool Scheduler::EnsurePage(Sequence* sequence) {
  if (NumPages(*sequence) * kv::kPageTokens > sequence->num_computed) return true;
  while (pages_.num_free() == 0) {
    Sequence* victim = running_.back();
    Preempt(victim);
    if (victim == sequence) return false;
  }
  sequence->pages.push_back(*pages_.Allocate());
  return true;
}

void Scheduler::Preempt(Sequence* victim) {
  running_.pop_back();
  FreeMemory(victim);
  victim->num_computed = 0;
  victim->drafts.clear();
  victim->state = SequenceState::kWaiting;
  ++victim->num_preemptions;
  ++num_preemptions_;
  Insert(waiting_, victim);
  plan_.preempted.push_back(victim);
}

void Scheduler::AdmitWaiting(Budget& budget) {
  while (!waiting_.empty() && budget.tokens > 0) {
    Sequence* sequence = waiting_.front();
    if (static_cast<int64_t>(running_.size()) >= limits_.max_num_seqs) return;
    if (!HasMemoryFor(*sequence)) return;
    const int64_t chunk = PrefillChunk(*sequence, budget);
    if (chunk == 0) return;
    if (!limits_.chunked_prefill && sequence->remaining() > budget.tokens) return;
    const bool partial = chunk < sequence->remaining();
    if (partial && limits_.max_num_partial_prefills > 0 &&
        budget.partial_prefills >= limits_.max_num_partial_prefills) {
      return;
    }
    if (partial) ++budget.partial_prefills;
    waiting_.pop_front();
    TakeMemory(sequence);
    Insert(running_, sequence);
    Schedule(sequence, chunk, budget);
  }
}

bool Scheduler::HasMemoryFor(const Sequence& sequence) const {
  const int64_t needed = Layout::PagesFor(sequence.length());
  if (running_.empty()) return needed <= pages_.num_free();
  int64_t growth = PagesToGrow(sequence);
  for (const Sequence* other : running_) growth += PagesToGrow(*other);
  return needed + std::min(growth, watermark_pages_) <= pages_.num_free();
}

void Scheduler::TakeMemory(Sequence* sequence) {
  sequence->state = SequenceState::kRunning;
  sequence->slot = *slots_.Allocate();
  // No allocation while it grows. Memory that is reserved and not used costs nothing.
  sequence->tokens.reserve(static_cast<size_t>(sequence->max_length));
  sequence->pages.reserve(static_cast<size_t>(PagesOfLife(sequence->max_length)));
  if (policy_ != nullptr) sequence->drafts.reserve(kMaxDrafts);
  while (NumPages(*sequence) < Layout::PagesFor(sequence->length())) {
    sequence->pages.push_back(*pages_.Allocate());
  }
}

void Scheduler::FreeMemory(Sequence* sequence) {
  for (const kv::PageId page : sequence->pages) pages_.Release(page);
  sequence->pages.clear();
  slots_.Release(sequence->slot);
  sequence->slot = -1;
}

int64_t Scheduler::PrefillChunk(const Sequence& sequence, const Budget& budget) const {
  int64_t chunk = std::min(sequence.remaining(), budget.tokens);
  const int64_t threshold = limits_.long_prefill_token_threshold;
  if (threshold > 0 && num_prefilling_ > 1) chunk = std::min(chunk, threshold);
  // Rows whose logits are wanted besides the last known token's.
  const int64_t free_rows =
      std::clamp<int64_t>(sequence.logits_from - sequence.num_computed, 0, sequence.remaining());
  const int64_t rows_left = free_rows + budget.extra_logit_rows;
  const bool to_the_end = chunk == sequence.remaining() && chunk - 1 <= rows_left;
  return to_the_end ? chunk : std::min(chunk, rows_left);
}

void Scheduler::Schedule(Sequence* sequence, int64_t num_tokens, Budget& budget) {
  const int64_t first = sequence->num_computed;
  const int64_t end = first + num_tokens;
  const bool samples = end == sequence->length();
  const int64_t prompt_rows =
      std::max<int64_t>(0, end - (samples ? 1 : 0) - std::max(first, sequence->logits_from));
  const int64_t logit_rows = prompt_rows + (samples ? 1 : 0);
  budget.tokens -= num_tokens;
  budget.extra_logit_rows -= prompt_rows;
  plan_.num_tokens += num_tokens;
  plan_.num_logit_rows += logit_rows;
  plan_.chunks.push_back({.sequence = sequence,
                          .first_position = first,
                          .num_tokens = static_cast<int32_t>(num_tokens),
                          .num_logit_rows = static_cast<int32_t>(logit_rows),
                          .samples = samples});
}

bool Scheduler::Before(const Sequence* a, const Sequence* b) const {
  if (limits_.policy == Policy::kPriority && a->priority != b->priority) {
    return a->priority < b->priority;
  }
  return a->arrival < b->arrival;
}

template <typename List>
void Scheduler::Insert(List& list, Sequence* sequence) {
  const auto before = [this](const Sequence* a, const Sequence* b) { return Before(a, b); };
  list.insert(std::upper_bound(list.begin(), list.end(), sequence, before), sequence);
}

template <typename List>
void Scheduler::Remove(List& list, Sequence* sequence) {
  const auto place = std::find(list.begin(), list.end(), sequence);
  CHECK(place != list.end());
  list.erase(place);
}

void Scheduler::CheckInvariants() const {
  std::vector<int32_t> holders(static_cast<size_t>(pages_.num_pages()), 0);
  for (const Sequence* sequence : running_) {
    CHECK(sequence->state == SequenceState::kRunning);
    CHECK_GE(sequence->slot, 0);
    CHECK_LE(sequence->num_computed, NumPages(*sequence) * kv::kPageTokens);
    for (const kv::PageId page : sequence->pages) ++holders[static_cast<size_t>(page)];
  }
  for (const Sequence* sequence : waiting_) {
    CHECK(sequence->state == SequenceState::kWaiting);
    CHECK(sequence->pages.empty());
    CHECK_EQ(sequence->slot, -1);
    CHECK_EQ(sequence->num_computed, 0);
  }
  for (size_t page = 0; page < holders.size(); ++page) {
    CHECK_EQ(holders[page], pages_.references(static_cast<kv::PageId>(page)));
  }
  CHECK_EQ(static_cast<int64_t>(running_.size()), slots_.num_used());
  CHECK_LE(static_cast<int64_t>(running_.size()), limits_.max_num_seqs);
  pages_.CheckInvariants();
  slots_.CheckInvariants();
}

}  // namespace fulgur::sched

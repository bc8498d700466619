#include "sched/scheduler.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <map>
#include <memory>
#include <random>
#include <string>

#include "kv/layout.h"

namespace fulgur::sched {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

constexpr int64_t kPage = kv::kPageTokens;

// Drives a scheduler like an engine whose model always says token 1.
class Harness {
 public:
  explicit Harness(SchedulerLimits limits, int64_t num_pages)
      : pages(num_pages), slots(limits.max_num_seqs), scheduler(Complete(limits), pages, slots) {}

  static SchedulerLimits Complete(SchedulerLimits limits) {
    if (limits.max_model_len == 0) limits.max_model_len = 1 << 20;
    if (limits.max_logit_rows == 0) limits.max_logit_rows = limits.max_num_seqs + 16;
    return limits;
  }

  Sequence* Add(int64_t prompt, int64_t output, int32_t priority = 0,
                std::optional<Clock::time_point> deadline = std::nullopt) {
    auto sequence = std::make_unique<Sequence>();
    sequence->id = all.size();
    sequence->priority = priority;
    sequence->tokens.assign(static_cast<size_t>(prompt), 0);
    sequence->num_prompt_tokens = prompt;
    sequence->max_length = prompt + output;
    sequence->deadline = deadline;
    scheduler.Add(sequence.get());
    all.push_back(std::move(sequence));
    return all.back().get();
  }

  // One step. Afterwards `tokens` says how many tokens of each sequence were computed.
  const StepPlan& Step() {
    const StepPlan& plan = scheduler.Plan(now);
    tokens.clear();
    for (const ScheduledChunk& chunk : plan.chunks) {
      tokens[chunk.sequence->id] = chunk.num_tokens;
      if (!chunk.samples) continue;
      chunk.sequence->tokens.push_back(1);
      if (chunk.sequence->length() == chunk.sequence->max_length) {
        scheduler.Finish(chunk.sequence);
      }
    }
    ++steps;
    return plan;
  }

  int RunToEnd(int most = 1000000) {
    const int before = steps;
    while (scheduler.HasWork() && steps - before < most) Step();
    EXPECT_FALSE(scheduler.HasWork());
    return steps - before;
  }

  void ExpectAllFree() {
    scheduler.CheckInvariants();
    EXPECT_EQ(pages.num_used(), 0);
    EXPECT_EQ(slots.num_used(), 0);
  }

  kv::PagePool pages;
  kv::SlotPool slots;
  Scheduler scheduler;
  std::vector<std::unique_ptr<Sequence>> all;
  std::map<uint64_t, int32_t> tokens;
  Clock::time_point now{};
  int steps = 0;
};

std::vector<uint64_t> Ids(const std::vector<Sequence*>& sequences) {
  std::vector<uint64_t> ids;
  for (const Sequence* sequence : sequences) ids.push_back(sequence->id);
  return ids;
}

// The reference trace: budget 16, R1 decodes (100 known, 99 computed), R2 has 40 tokens with 20
// computed, R3 waits. Without a draft R1 takes one token, not two, so R2 gets 15.
TEST(Scheduler, TraceOfAMixedStep) {
  Harness h({.max_num_seqs = 4, .max_num_batched_tokens = 16}, 10);
  Sequence* r1 = h.Add(99, 10);
  while (r1->length() < 100) h.Step();
  Sequence* r2 = h.Add(40, 10);
  h.Step();
  EXPECT_THAT(h.tokens, ElementsAre(std::pair(0, 1), std::pair(1, 15)));
  h.Step();
  EXPECT_THAT(h.tokens, ElementsAre(std::pair(0, 1), std::pair(1, 15)));
  Sequence* r3 = h.Add(30, 10);
  EXPECT_EQ(r1->num_computed, r1->length() - 1);
  EXPECT_EQ(r2->remaining(), 10);
  const StepPlan& plan = h.Step();
  EXPECT_THAT(h.tokens, ElementsAre(std::pair(0, 1), std::pair(1, 10), std::pair(2, 5)));
  EXPECT_TRUE(plan.chunks[1].samples);
  EXPECT_FALSE(plan.chunks[2].samples);
  EXPECT_EQ(r3->num_computed, 5);
  for (const Sequence* decoding : {r1, r2}) {
    EXPECT_EQ(decoding->num_computed, decoding->length() - 1);
  }
}

TEST(Scheduler, ALaterPromptIsNotReachedWhenTheBudgetIsSpent) {
  Harness h({.max_num_seqs = 4, .max_num_batched_tokens = 16}, 10);
  h.Add(40, 10);
  Sequence* later = h.Add(5, 10);
  h.Step();
  EXPECT_THAT(h.tokens, ElementsAre(std::pair(0, 16)));
  EXPECT_EQ(later->state, SequenceState::kWaiting);
}

// Running [A, B, C], no page left, A needs one: C goes, and admission is skipped in this step.
TEST(Scheduler, TraceOfPreemption) {
  Harness h({.max_num_seqs = 4, .max_num_batched_tokens = 4096, .watermark = 0.0}, 3);
  Sequence* a = h.Add(kPage - 1, 300);
  Sequence* b = h.Add(10, 200);
  Sequence* c = h.Add(20, 200);
  h.Step();
  h.Step();
  EXPECT_EQ(h.pages.num_free(), 0);
  Sequence* d = h.Add(5, 5);
  const StepPlan& plan = h.Step();
  EXPECT_THAT(Ids(plan.preempted), ElementsAre(c->id));
  EXPECT_THAT(h.tokens, ElementsAre(std::pair(a->id, 1), std::pair(b->id, 1)));
  EXPECT_THAT(h.scheduler.waiting(), ElementsAre(c, d));
  EXPECT_EQ(c->num_computed, 0);
  EXPECT_EQ(c->length(), 22);  // its output is kept
  h.RunToEnd();
  EXPECT_EQ(c->length(), 220);
  h.ExpectAllFree();
}

// A cannot grow even without C: B goes, too.
TEST(Scheduler, PreemptionGoesOnUntilAPageIsFree) {
  Harness h({.max_num_seqs = 4, .max_num_batched_tokens = 4096, .watermark = 0.0}, 2);
  Sequence* a = h.Add(kPage - 1, 200);
  Sequence* b = h.Add(10, 300);
  h.Step();
  h.Step();
  h.Step();
  EXPECT_EQ(b->state, SequenceState::kWaiting);
  EXPECT_EQ(b->num_preemptions, 1);
  EXPECT_EQ(a->state, SequenceState::kRunning);
  h.RunToEnd();
  h.ExpectAllFree();
}

TEST(Scheduler, VictimIsTheLeastUrgent) {
  Harness h({.max_num_seqs = 4,
             .max_num_batched_tokens = 4096,
             .policy = Policy::kPriority,
             .watermark = 0.0},
            3);
  Sequence* low = h.Add(10, 200, /*priority=*/5);
  Sequence* mid = h.Add(10, 200, /*priority=*/1);
  Sequence* high = h.Add(kPage - 1, 300, /*priority=*/-3);
  h.Step();
  h.Step();
  const StepPlan& plan = h.Step();
  EXPECT_THAT(Ids(plan.preempted), ElementsAre(low->id));
  EXPECT_EQ(mid->state, SequenceState::kRunning);
  EXPECT_EQ(high->state, SequenceState::kRunning);
  h.RunToEnd();
  h.ExpectAllFree();
}

TEST(Scheduler, PriorityDecidesWhoIsAdmitted) {
  Harness h({.max_num_seqs = 1, .max_num_batched_tokens = 64, .policy = Policy::kPriority}, 10);
  h.Add(4, 2, 0);
  h.Step();
  h.Add(4, 2, 7);
  h.Add(4, 2, -7);
  h.Add(4, 2, -7);
  std::vector<uint64_t> order;
  while (h.scheduler.HasWork()) {
    h.Step();
    if (!h.tokens.empty() && (order.empty() || order.back() != h.tokens.begin()->first)) {
      order.push_back(h.tokens.begin()->first);
    }
  }
  EXPECT_THAT(order, ElementsAre(0, 2, 3, 1));
}

TEST(Scheduler, FcfsIgnoresPriority) {
  Harness h({.max_num_seqs = 1, .max_num_batched_tokens = 64}, 10);
  Sequence* first = h.Add(4, 2, 9);
  h.Add(4, 2, 0);
  h.Step();
  EXPECT_EQ(first->state, SequenceState::kRunning);
}

TEST(Scheduler, AHeadWithoutMemoryHoldsBackTheRest) {
  Harness h({.max_num_seqs = 8, .max_num_batched_tokens = 4096, .watermark = 0.0}, 4);
  h.Add(2 * kPage, 100);
  h.Step();
  Sequence* big = h.Add(3 * kPage, 10);
  Sequence* small = h.Add(5, 10);
  h.Step();
  EXPECT_EQ(big->state, SequenceState::kWaiting);
  EXPECT_EQ(small->state, SequenceState::kWaiting);
  h.RunToEnd();
  h.ExpectAllFree();
}

// Two of ten pages stay free for the output of those that run, if they may want as many.
TEST(Scheduler, WatermarkLeavesRoomForOutput) {
  Harness h({.max_num_seqs = 8, .max_num_batched_tokens = 4096, .watermark = 0.2}, 10);
  h.Add(6 * kPage - 100, 1000);
  Sequence* fits = h.Add(2 * kPage - 5, 3);
  Sequence* waits = h.Add(1, 3);
  h.Step();
  EXPECT_EQ(fits->state, SequenceState::kRunning);
  EXPECT_EQ(waits->state, SequenceState::kWaiting);
  while (fits->state == SequenceState::kRunning) h.Step();
  h.Step();
  EXPECT_EQ(waits->state, SequenceState::kRunning);
}

TEST(Scheduler, WatermarkIsNoMoreThanTheOutputThatMayCome) {
  Harness h({.max_num_seqs = 8, .max_num_batched_tokens = 4096, .watermark = 0.9}, 4);
  Sequence* first = h.Add(2 * kPage - 5, 3);
  Sequence* second = h.Add(2 * kPage - 5, 3);
  h.Step();
  EXPECT_EQ(first->state, SequenceState::kRunning);
  EXPECT_EQ(second->state, SequenceState::kRunning);
}

TEST(Scheduler, NeverFitsIsRefusedWithTheNumbers) {
  Harness h({.max_num_seqs = 8, .max_num_batched_tokens = 64}, 4);
  EXPECT_TRUE(h.scheduler.CheckFits(4 * kPage + 1).ok());  // the last token needs no row
  const absl::Status status = h.scheduler.CheckFits(4 * kPage + 2);
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(status.message()), HasSubstr("1026 tokens need 5 cache pages"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("has 4 in all"));
}

TEST(Scheduler, WithoutChunkingAPromptWaitsForAWholeStep) {
  Harness h({.max_num_seqs = 4, .max_num_batched_tokens = 64, .chunked_prefill = false}, 10);
  Sequence* first = h.Add(40, 3);
  Sequence* second = h.Add(40, 3);
  h.Step();
  EXPECT_THAT(h.tokens, ElementsAre(std::pair(first->id, 40)));
  h.Step();
  EXPECT_THAT(h.tokens, ElementsAre(std::pair(first->id, 1), std::pair(second->id, 40)));
}

TEST(Scheduler, PromptLogprobsCapTheRowsOfAStep) {
  Harness h({.max_num_seqs = 2, .max_num_batched_tokens = 64, .max_logit_rows = 2 + 10}, 10);
  Sequence* sequence = h.Add(35, 2);
  sequence->logits_from = 0;
  std::vector<int32_t> chunks;
  std::vector<int32_t> rows;
  for (int i = 0; i < 4; ++i) {
    const StepPlan& plan = h.Step();
    EXPECT_LE(plan.num_logit_rows, 12);
    chunks.push_back(plan.chunks[0].num_tokens);
    rows.push_back(plan.chunks[0].num_logit_rows);
  }
  EXPECT_THAT(chunks, ElementsAre(10, 10, 10, 5));
  EXPECT_THAT(rows, ElementsAre(10, 10, 10, 5));
}

TEST(Scheduler, PromptLogprobsStartWhereTheyAreWanted) {
  Harness h({.max_num_seqs = 2, .max_num_batched_tokens = 64, .max_logit_rows = 2 + 10}, 10);
  Sequence* sequence = h.Add(50, 2);
  sequence->logits_from = 45;
  const StepPlan& plan = h.Step();
  EXPECT_EQ(plan.chunks[0].num_tokens, 50);
  EXPECT_EQ(plan.chunks[0].num_logit_rows, 5);
}

TEST(Scheduler, AbortAndDeadlineFreeMemoryAtTheNextPlan) {
  Harness h({.max_num_seqs = 2, .max_num_batched_tokens = 4096}, 10);
  Sequence* running = h.Add(600, 100);
  Sequence* late = h.Add(600, 100, 0, h.now + std::chrono::seconds(5));
  Sequence* waiting = h.Add(600, 100);
  h.Step();
  h.scheduler.Abort(running);
  h.scheduler.Abort(waiting);
  const StepPlan& plan = h.Step();
  EXPECT_THAT(Ids(plan.reaped), UnorderedElementsAre(running->id, waiting->id));
  EXPECT_EQ(h.pages.num_used(), 3);
  h.now += std::chrono::seconds(5);
  h.scheduler.Abort(running);  // already gone: no harm
  EXPECT_THAT(Ids(h.Step().reaped), ElementsAre(late->id));
  h.ExpectAllFree();
}

TEST(Scheduler, AdmissionRecoversAfterAllAreAbortedAtOnce) {
  Harness h({.max_num_seqs = 50, .max_num_batched_tokens = 512}, 20);
  for (int i = 0; i < 50; ++i) h.Add(1000, 1000);
  for (int i = 0; i < 30; ++i) h.Step();
  for (const auto& sequence : h.all) h.scheduler.Abort(sequence.get());
  Sequence* next = h.Add(10, 1);
  h.Step();
  EXPECT_EQ(next->state, SequenceState::kFinished);
  h.ExpectAllFree();
}

TEST(Scheduler, DecodesAreNeverStarvedByPrefills) {
  Harness h({.max_num_seqs = 8, .max_num_batched_tokens = 256}, 100);
  Sequence* victim = h.Add(4, 100);
  h.Step();
  for (int i = 0; i < 4; ++i) h.Add(6000, 5);
  while (victim->state == SequenceState::kRunning) {
    h.Step();
    EXPECT_EQ(h.tokens[victim->id], 1);
  }
}

// With the threshold short prompts do not wait for a long one; the long one keeps going.
TEST(Scheduler, ThresholdLetsShortPromptsThrough) {
  Harness h(
      {.max_num_seqs = 32, .max_num_batched_tokens = 512, .long_prefill_token_threshold = 256},
      200);
  Sequence* big = h.Add(20000, 2);
  h.Step();
  EXPECT_THAT(h.tokens, ElementsAre(std::pair(big->id, 512)));  // alone it is not held back
  std::vector<Sequence*> small;
  for (int i = 0; i < 20; ++i) small.push_back(h.Add(50, 1));
  int steps = 0;
  while (std::any_of(small.begin(), small.end(),
                     [](const Sequence* s) { return s->state != SequenceState::kFinished; })) {
    h.Step();
    ++steps;
    EXPECT_GE(h.tokens[big->id], 256);
  }
  EXPECT_LE(steps, 5);
}

TEST(Scheduler, PartialPrefillsAreLimited) {
  const auto run = [](int64_t limit) {
    Harness h({.max_num_seqs = 8,
               .max_num_batched_tokens = 512,
               .long_prefill_token_threshold = 100,
               .max_num_partial_prefills = limit},
              100);
    for (int i = 0; i < 4; ++i) h.Add(1000, 5);
    h.Step();
    return h.tokens.size();
  };
  EXPECT_EQ(run(1), 1U);
  EXPECT_EQ(run(2), 2U);
  EXPECT_EQ(run(0), 4U);
}

TEST(Scheduler, SeveralPartialPrefillsShareTheBudget) {
  Harness h({.max_num_seqs = 8,
             .max_num_batched_tokens = 512,
             .max_model_len = 5000,
             .max_num_partial_prefills = 2},
            100);
  for (int i = 0; i < 4; ++i) h.Add(1000, 5);
  h.Step();
  EXPECT_THAT(h.tokens, ElementsAre(std::pair(0, 200), std::pair(1, 200)));
}

// Eight equal requests at once: none is much slower than another.
TEST(Scheduler, EqualRequestsRunAtEqualSpeed) {
  for (const int64_t partial : {0, 1, 2}) {
    Harness h({.max_num_seqs = 8,
               .max_num_batched_tokens = 256,
               .max_model_len = 2000,
               .max_num_partial_prefills = partial},
              60);
    std::vector<int> first(8, 0);
    std::vector<int> last(8, 0);
    for (int i = 0; i < 8; ++i) h.Add(800, 300);
    while (h.scheduler.HasWork()) {
      h.Step();
      for (size_t i = 0; i < 8; ++i) {
        if (first[i] == 0 && h.all[i]->length() > 800) first[i] = h.steps;
        if (last[i] == 0 && h.all[i]->state == SequenceState::kFinished) last[i] = h.steps;
      }
    }
    for (size_t i = 0; i < 8; ++i) EXPECT_EQ(last[i] - first[i], 299);  // a token every step
  }
}

TEST(Scheduler, TwoLongRequestsInOneAndAHalfPoolsDoNotThrash) {
  Harness h({.max_num_seqs = 4, .max_num_batched_tokens = 256, .watermark = 0.0}, 12);
  h.Add(4 * kPage, 3 * kPage);
  h.Add(4 * kPage, 3 * kPage);
  h.RunToEnd(20000);
  EXPECT_LE(h.scheduler.num_preemptions(), 4);
  h.ExpectAllFree();
}

TEST(Scheduler, ValidatesItsLimits) {
  const SchedulerLimits good{.max_num_seqs = 4, .max_num_batched_tokens = 16, .max_model_len = 64};
  EXPECT_TRUE(ValidateLimits(good).ok());
  const auto expect = [&](void (*change)(SchedulerLimits&), const char* flag) {
    SchedulerLimits limits = good;
    change(limits);
    EXPECT_THAT(std::string(ValidateLimits(limits).message()), HasSubstr(flag));
  };
  expect([](auto& l) { l.max_num_seqs = 0; }, "--max-num-seqs is 0");
  expect([](auto& l) { l.max_num_batched_tokens = 3; }, "at least 4 (--max-num-seqs)");
  expect([](auto& l) { l.chunked_prefill = false; }, "at least 64 (--max-model-len)");
  expect([](auto& l) { l.max_model_len = 1; }, "--max-model-len is 1");
  expect([](auto& l) { l.long_prefill_token_threshold = -1; }, "--long-prefill-token-threshold");
  expect([](auto& l) { l.max_num_partial_prefills = -1; }, "--max-num-partial-prefills");
  expect([](auto& l) { l.watermark = 1.0; }, "--watermark");
  expect([](auto& l) { l.watermark = std::nan(""); }, "--watermark");
}

// Random workloads; each step keeps what a scheduler must keep.
class SchedulerProperty : public ::testing::TestWithParam<uint32_t> {};

TEST_P(SchedulerProperty, KeepsItsPromises) {
  std::mt19937 rng(GetParam());
  const auto draw = [&](int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(rng);
  };
  const int64_t num_pages = draw(3, 30);
  SchedulerLimits limits;
  limits.max_num_seqs = draw(1, 12);
  limits.max_num_batched_tokens = limits.max_num_seqs + draw(0, 700);
  limits.max_model_len = num_pages * kPage;
  limits.max_logit_rows = limits.max_num_seqs + draw(1, 20);
  limits.policy = draw(0, 1) == 0 ? Policy::kFcfs : Policy::kPriority;
  limits.long_prefill_token_threshold = draw(0, 1) * draw(1, 300);
  limits.max_num_partial_prefills = draw(0, 3);
  limits.watermark = draw(0, 1) == 0 ? 0.0 : 0.1;
  Harness h(limits, num_pages);

  std::vector<Sequence*> alive;
  for (int step = 0; step < 3000; ++step) {
    if (step < 2000 && draw(0, 9) == 0) {
      const int64_t prompt = draw(1, limits.max_model_len - 1);
      const int64_t output = draw(1, std::min<int64_t>(400, limits.max_model_len - prompt));
      Sequence* sequence = h.Add(prompt, output, static_cast<int32_t>(draw(-1, 1)));
      if (draw(0, 3) == 0) sequence->logits_from = draw(0, prompt);
      alive.push_back(sequence);
    }
    if (draw(0, 40) == 0 && !alive.empty()) {
      h.scheduler.Abort(
          alive[static_cast<size_t>(draw(0, static_cast<int64_t>(alive.size()) - 1))]);
    }
    const auto more_urgent = [&](const Sequence* a, const Sequence* b) {
      return std::pair(limits.policy == Policy::kPriority ? a->priority : 0, a->arrival) <
             std::pair(limits.policy == Policy::kPriority ? b->priority : 0, b->arrival);
    };
    const std::vector<Sequence*> before = h.scheduler.running();
    const auto first = std::min_element(before.begin(), before.end(), more_urgent);
    const bool idle = before.empty() && h.scheduler.waiting().empty();
    const StepPlan& plan = h.Step();

    EXPECT_LE(plan.num_tokens, limits.max_num_batched_tokens);
    EXPECT_LE(plan.num_logit_rows, limits.max_logit_rows);
    EXPECT_LE(static_cast<int64_t>(h.scheduler.running().size()), limits.max_num_seqs);
    int64_t total = 0;
    for (const ScheduledChunk& chunk : plan.chunks) {
      total += chunk.num_tokens;
      EXPECT_GT(chunk.num_tokens, 0);
      EXPECT_LE(chunk.num_logit_rows, chunk.num_tokens);
      if (chunk.samples) {
        EXPECT_GE(chunk.num_logit_rows, 1);
      }
    }
    EXPECT_EQ(total, plan.num_tokens);
    if (!idle && plan.reaped.empty()) {
      EXPECT_GT(plan.num_tokens, 0) << "stuck at step " << step;
    }
    if (!before.empty()) {
      EXPECT_EQ(std::count(plan.preempted.begin(), plan.preempted.end(), *first), 0);
    }
    h.scheduler.CheckInvariants();
    std::erase_if(alive, [](const Sequence* s) { return s->state == SequenceState::kFinished; });
  }
  h.RunToEnd();
  h.ExpectAllFree();
  for (const auto& sequence : h.all) {
    if (!sequence->aborted) {
      EXPECT_EQ(sequence->length(), sequence->max_length);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, SchedulerProperty, ::testing::Range(1U, 41U));

TEST(Scheduler, TheSameCallsGiveTheSamePlans) {
  const auto run = [] {
    std::mt19937 rng(9);
    Harness h({.max_num_seqs = 6, .max_num_batched_tokens = 300}, 9);
    std::string log;
    for (int step = 0; step < 2000; ++step) {
      if (rng() % 20 == 0) h.Add(1 + rng() % 1000, 1 + rng() % 500);
      if (rng() % 50 == 0 && !h.all.empty()) h.scheduler.Abort(h.all[rng() % h.all.size()].get());
      for (const ScheduledChunk& chunk : h.Step().chunks) {
        log += std::to_string(chunk.sequence->id) + ":" + std::to_string(chunk.num_tokens) + " ";
      }
    }
    return log;
  };
  EXPECT_EQ(run(), run());
}

}  // namespace
}  // namespace fulgur::sched

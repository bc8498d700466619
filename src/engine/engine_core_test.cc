#include "engine/engine_core.h"

#include <gmock/gmock.h>

#include <cmath>
#include <limits>
#include <map>
#include <random>

#include "engine/core_harness.h"

namespace fulgur::engine {
namespace {

using ::testing::HasSubstr;

class Harness : public CoreHarness {
 public:
  using CoreHarness::CoreHarness;

  void RunToEnd() {
    for (int i = 0; core.HasWork(); ++i) {
      ASSERT_LT(i, 100000);
      ASSERT_TRUE(core.Step().ok());
    }
  }

  void ExpectAllFree() {
    core.CheckInvariants();
    EXPECT_EQ(core.Stats().pages_used, 0);
    EXPECT_EQ(core.Stats().slots_used, 0);
    EXPECT_EQ(core.Stats().num_running, 0);
    EXPECT_EQ(core.Stats().num_waiting, 0);
    for (const auto& [id, outcome] : outcomes) EXPECT_EQ(outcome.num_ends, 1);
  }
};

Request Greedy(std::vector<int32_t> prompt, int64_t max_tokens) {
  Request request;
  request.prompt = std::move(prompt);
  request.params.temperature = 0.0F;
  request.params.max_tokens = max_tokens;
  request.params.ignore_eos = true;
  return request;
}

// All kinds of parameters, always with a seed.
Request RandomRequest(std::mt19937& rng, int64_t longest) {
  const auto draw = [&](int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(rng);
  };
  Request request;
  const int64_t prompt = draw(1, longest - 1);
  request.prompt = RandomPrompt(rng, prompt);
  request.priority = static_cast<int32_t>(draw(-1, 1));
  sample::SamplingParams& params = request.params;
  params.max_tokens = draw(1, std::min<int64_t>(longest - prompt, 300));
  params.seed = rng();
  params.temperature = draw(0, 3) == 0 ? 0.0F : 0.8F;
  params.ignore_eos = draw(0, 1) == 0;
  if (draw(0, 3) == 0) params.top_k = 5;
  if (draw(0, 3) == 0) params.top_p = 0.9F;
  if (draw(0, 5) == 0) params.repetition_penalty = 1.3F;
  if (draw(0, 5) == 0) params.frequency_penalty = 0.2F;
  if (draw(0, 5) == 0) params.stop_token_ids = {3, 4};
  if (draw(0, 5) == 0) params.min_tokens = std::min<int64_t>(5, params.max_tokens);
  if (draw(0, 3) == 0) params.num_logprobs = static_cast<int32_t>(draw(0, 4));
  if (draw(0, 5) == 0) params.num_prompt_logprobs = static_cast<int32_t>(draw(0, 2));
  return request;
}

// What the request gives when nothing else runs and nothing is cut into chunks.
Outcome Alone(const Request& request, int64_t num_pages) {
  Harness h({.max_num_seqs = 1,
             .max_num_batched_tokens = num_pages * kv::kPageTokens,
             .max_logit_rows = num_pages * kv::kPageTokens + 1},
            num_pages);
  const RequestId id = h.Add(request);
  h.RunToEnd();
  h.ExpectAllFree();
  return h.outcomes[id];
}

void ExpectSameLogprobs(const std::vector<TokenLogprob>& a, const std::vector<TokenLogprob>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) {
    EXPECT_EQ(a[i].token, b[i].token);
    EXPECT_EQ(a[i].logprob, b[i].logprob);
    EXPECT_EQ(a[i].rank, b[i].rank);
  }
}

void ExpectSame(const Outcome& a, const Outcome& b) {
  ASSERT_EQ(a.ids(), b.ids());
  EXPECT_EQ(a.last->finish, b.last->finish);
  EXPECT_EQ(a.last->stop_token, b.last->stop_token);
  for (size_t i = 0; i < a.tokens.size(); ++i) {
    ASSERT_EQ(a.tokens[i].logprob.has_value(), b.tokens[i].logprob.has_value());
    if (a.tokens[i].logprob) ExpectSameLogprobs({*a.tokens[i].logprob}, {*b.tokens[i].logprob});
    ExpectSameLogprobs(a.tokens[i].alternatives, b.tokens[i].alternatives);
  }
  ASSERT_EQ(a.prompt_logprobs.size(), b.prompt_logprobs.size());
  for (size_t i = 0; i < a.prompt_logprobs.size(); ++i) {
    ExpectSameLogprobs(a.prompt_logprobs[i], b.prompt_logprobs[i]);
  }
}

TEST(EngineCore, AnswersOneRequest) {
  Harness h({.max_num_seqs = 2, .max_num_batched_tokens = 64}, 4);
  const RequestId id = h.Add(Greedy({1, 2, 3}, 5));
  h.RunToEnd();
  const Outcome& outcome = h.outcomes[id];
  EXPECT_EQ(outcome.tokens.size(), 5U);
  EXPECT_EQ(outcome.last->finish, FinishReason::kLength);
  EXPECT_EQ(outcome.last->stop_token, std::nullopt);
  const RequestRecord& record = *outcome.last->record;
  EXPECT_EQ(record.num_prompt_tokens, 3);
  EXPECT_EQ(record.num_output_tokens, 5);
  EXPECT_LE(record.submitted, *record.scheduled);
  EXPECT_LE(*record.scheduled, *record.first_token);
  EXPECT_LE(*record.first_token, *record.last_token);
  const EngineStats stats = h.core.Stats();
  EXPECT_EQ(stats.prompt_tokens, 3);
  EXPECT_EQ(stats.generation_tokens, 5);
  EXPECT_EQ(stats.num_steps, 5);
  EXPECT_EQ(stats.step_tokens_sum, 3 + 4);
  EXPECT_EQ(stats.step_tokens[0], 4);  // steps of one token
  EXPECT_EQ(stats.step_tokens[1], 1);  // of two to eight
  EXPECT_EQ(stats.num_finished[static_cast<size_t>(FinishReason::kLength)], 1);
  h.ExpectAllFree();
}

class SameTokens : public ::testing::TestWithParam<uint32_t> {};

// However requests are batched, chunked and preempted, each says what it says alone.
TEST_P(SameTokens, AloneAndInAnyCompany) {
  std::mt19937 rng(GetParam());
  const auto draw = [&](int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(rng);
  };
  const int64_t num_pages = draw(3, 8);
  sched::SchedulerLimits limits;
  limits.max_num_seqs = draw(1, 8);
  limits.max_num_batched_tokens = limits.max_num_seqs + draw(0, 1) * draw(0, 200);
  limits.max_logit_rows = limits.max_num_seqs + draw(1, 40);
  limits.policy = draw(0, 1) == 0 ? sched::Policy::kFcfs : sched::Policy::kPriority;
  limits.long_prefill_token_threshold = draw(0, 1) * draw(1, 50);
  limits.watermark = 0.0;
  Harness h(limits, num_pages);

  std::map<RequestId, Request> sent;
  std::vector<RequestId> aborted;
  for (int step = 0; h.core.HasWork() || sent.size() < 25; ++step) {
    ASSERT_LT(step, 100000);
    if (sent.size() < 25 && draw(0, 8) == 0) {
      const Request request = RandomRequest(rng, std::min<int64_t>(num_pages * 256, 700));
      sent[h.Add(request)] = request;
    }
    if (draw(0, 60) == 0 && !sent.empty()) {
      aborted.push_back(1 + rng() % sent.size());
      h.core.Abort(aborted.back());
    }
    ASSERT_TRUE(h.core.Step().ok());
    h.core.CheckInvariants();
  }
  h.ExpectAllFree();
  ASSERT_EQ(h.outcomes.size(), sent.size());
  for (auto& [id, request] : sent) {
    SCOPED_TRACE(id);
    const Outcome& outcome = h.outcomes[id];
    const Outcome alone = Alone(request, num_pages);
    if (outcome.last->finish != FinishReason::kAbort) {
      ExpectSame(outcome, alone);
      continue;
    }
    EXPECT_EQ(std::count(aborted.begin(), aborted.end(), id) > 0, true);
    const std::vector<int32_t> ids = outcome.ids();
    const std::vector<int32_t> all = alone.ids();
    ASSERT_LE(ids.size(), all.size());
    EXPECT_TRUE(std::equal(ids.begin(), ids.end(), all.begin()));
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, SameTokens, ::testing::Range(1U, 31U));

// A pool too small for eight requests of 100 + 300 tokens.
TEST(EngineCore, PreemptionChangesNothing) {
  Harness small({.max_num_seqs = 8, .max_num_batched_tokens = 64, .watermark = 0.0}, 9);
  std::mt19937 rng(4);
  std::map<RequestId, Request> sent;
  for (int i = 0; i < 8; ++i) {
    Request request = Greedy(RandomPrompt(rng, 100), 300);
    request.params.num_logprobs = 2;
    request.params.num_prompt_logprobs = 1;
    sent[small.Add(request)] = request;
  }
  small.RunToEnd();
  EXPECT_GT(small.core.Stats().num_preemptions, 0);
  for (auto& [id, request] : sent) ExpectSame(small.outcomes[id], Alone(request, 9));
  small.ExpectAllFree();
}

TEST(EngineCore, StopTokensEosAndMinTokens) {
  Harness h({.max_num_seqs = 4, .max_num_batched_tokens = 64}, 8);
  // Every row favours token 0 (end of sequence), then 7.
  h.runner.edit_row = [](int64_t, std::span<float> row) {
    row[0] = 50.0F;
    row[7] = 40.0F;
  };
  Request eos = Greedy({1}, 20);
  eos.params.ignore_eos = false;
  Request patient = eos;
  patient.params.min_tokens = 4;
  Request stop = Greedy({1}, 20);
  stop.params.stop_token_ids = {0};
  Request ignoring = Greedy({1}, 6);
  const RequestId a = h.Add(eos);
  const RequestId b = h.Add(patient);
  const RequestId c = h.Add(stop);
  const RequestId d = h.Add(ignoring);
  h.RunToEnd();
  EXPECT_EQ(h.outcomes[a].ids(), (std::vector<int32_t>{0}));
  EXPECT_EQ(h.outcomes[a].last->finish, FinishReason::kStop);
  EXPECT_EQ(h.outcomes[a].last->stop_token, 0);
  EXPECT_EQ(h.outcomes[b].ids(), (std::vector<int32_t>{7, 7, 7, 7, 0}));
  EXPECT_EQ(h.outcomes[c].last->finish, FinishReason::kStop);
  EXPECT_EQ(h.outcomes[d].ids(), (std::vector<int32_t>{0, 0, 0, 0, 0, 0}));
  EXPECT_EQ(h.outcomes[d].last->finish, FinishReason::kLength);
}

TEST(EngineCore, BadLogitsEndOneRequestOnly) {
  Harness h({.max_num_seqs = 4, .max_num_batched_tokens = 64}, 8);
  h.runner.edit_row = [](int64_t position, std::span<float> row) {
    if (position == 12) row[3] = std::numeric_limits<float>::quiet_NaN();
  };
  const RequestId good = h.Add(Greedy({1, 2}, 8));
  const RequestId bad = h.Add(Greedy({1, 2, 3, 4, 5, 6}, 20));
  h.RunToEnd();
  EXPECT_EQ(h.outcomes[good].last->finish, FinishReason::kLength);
  EXPECT_EQ(h.outcomes[bad].last->finish, FinishReason::kError);
  EXPECT_THAT(h.outcomes[bad].last->error, HasSubstr("not a finite number"));
  EXPECT_EQ(h.outcomes[bad].tokens.size(), 7U);
  EXPECT_EQ(h.core.Stats().num_bad_logits, 1);
  h.ExpectAllFree();
}

TEST(EngineCore, PromptLogprobsHaveOneEntryPerToken) {
  for (const int64_t length : {1, 2, 3, 64, 600}) {
    Harness h({.max_num_seqs = 2, .max_num_batched_tokens = 64}, 8);
    std::mt19937 rng(static_cast<uint32_t>(length));
    Request request = Greedy(RandomPrompt(rng, length), 3);
    request.params.num_prompt_logprobs = 2;
    const RequestId id = h.Add(request);
    h.RunToEnd();
    const auto& entries = h.outcomes[id].prompt_logprobs;
    ASSERT_EQ(entries.size(), static_cast<size_t>(length));
    EXPECT_TRUE(entries[0].empty());
    for (size_t i = 1; i < entries.size(); ++i) {
      ASSERT_EQ(entries[i].size(), 3U);
      EXPECT_EQ(entries[i][0].token, request.prompt[i]);
      EXPECT_EQ(entries[i][1].rank, 1);
      EXPECT_LE(entries[i][0].logprob, entries[i][1].logprob);
    }
  }
}

TEST(EngineCore, UnseededRequestsDifferAndFollowTheEnginesSeed) {
  const auto run = [] {
    Harness h({.max_num_seqs = 4, .max_num_batched_tokens = 64}, 8);
    Request request = Greedy({1, 2, 3}, 20);
    request.params.temperature = 1.0F;
    const RequestId a = h.Add(request);
    const RequestId b = h.Add(request);
    h.RunToEnd();
    return std::pair(h.outcomes[a].ids(), h.outcomes[b].ids());
  };
  const auto first = run();
  EXPECT_NE(first.first, first.second);
  EXPECT_EQ(first, run());
}

TEST(EngineCore, RefusesWhatCanNeverRun) {
  Harness h({.max_num_seqs = 2, .max_num_batched_tokens = 64, .max_model_len = 2000}, 4);
  const auto refuse = [&](Request request, absl::StatusCode code, const char* text) {
    const absl::Status status = h.core.CheckRequest(request);
    EXPECT_EQ(status.code(), code);
    EXPECT_THAT(std::string(status.message()), HasSubstr(text));
  };
  constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;
  refuse(Greedy({}, 5), kInvalid, "empty");
  refuse(Greedy({1}, 0), kInvalid, "max_tokens");
  refuse(Greedy({1, 50}, 5), kInvalid, "token id 50");
  refuse(Greedy({-1}, 5), kInvalid, "token id -1");
  refuse(Greedy({1}, 2000), kInvalid, "the context holds 2000");
  refuse(Greedy({1}, std::numeric_limits<int64_t>::max()), kInvalid, "the context holds 2000");
  refuse(Greedy(std::vector<int32_t>(2000, 1), 1), kInvalid, "the context holds 2000");
  refuse(Greedy({1}, 1500), absl::StatusCode::kResourceExhausted, "has 4 in all");
  Request biased = Greedy({1}, 5);
  biased.params.logit_bias = {{77, 1.0F}};
  refuse(biased, kInvalid, "logit_bias holds token id 77");
}

TEST(EngineCore, DeadlineEndsARequest) {
  Harness h({.max_num_seqs = 2, .max_num_batched_tokens = 64}, 4);
  Request request = Greedy({1, 2}, 500);
  request.deadline = Clock::now();
  const RequestId late = h.Add(request);
  const RequestId good = h.Add(Greedy({1, 2}, 5));
  h.RunToEnd();
  EXPECT_EQ(h.outcomes[late].last->finish, FinishReason::kAbort);
  EXPECT_THAT(h.outcomes[late].last->error, HasSubstr("deadline"));
  EXPECT_EQ(h.outcomes[good].last->finish, FinishReason::kLength);
  h.ExpectAllFree();
}

TEST(EngineCore, AFailedStepIsReported) {
  Harness h({.max_num_seqs = 2, .max_num_batched_tokens = 64}, 4);
  h.runner.before_step = [](const model::StepBatch&) { return absl::InternalError("no power"); };
  const RequestId id = h.Add(Greedy({1, 2}, 5));
  const absl::Status status = h.core.Step();
  EXPECT_EQ(status.message(), "no power");
  h.core.EndAll(FinishReason::kError, std::string(status.message()));
  EXPECT_EQ(h.outcomes[id].last->finish, FinishReason::kError);
  h.ExpectAllFree();
}

}  // namespace
}  // namespace fulgur::engine

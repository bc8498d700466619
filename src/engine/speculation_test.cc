#include <gmock/gmock.h>

#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "engine/core_harness.h"
#include "engine/engine_core.h"

namespace fulgur::engine {
namespace {

using ::testing::HasSubstr;

// A forward pass costs 10 and a tenth per row, drafting 1: speculation pays.
sched::CostTable CheapRows(int32_t num_drafts) {
  return {.forward = {{1, 10.0}, {100, 20.0}},
          .draft_one = {{1, 1.0}, {100, 2.0}},
          .draft_full = {{1, 1.0}, {100, 2.0}},
          .max_drafts = num_drafts};
}

SpeculationOptions Fixed(int32_t num_drafts) {
  return {.num_drafts = num_drafts, .adaptive = false};
}

SpeculationOptions Adaptive(int32_t num_drafts) {
  return {.num_drafts = num_drafts, .adaptive = true, .costs = CheapRows(num_drafts)};
}

class Harness : public CoreHarness {
 public:
  using CoreHarness::CoreHarness;

  int RunToEnd() {
    int steps = 0;
    for (; core.HasWork() && steps < 100000; ++steps) {
      EXPECT_TRUE(core.Step().ok());
      core.CheckInvariants();
    }
    EXPECT_EQ(core.Stats().pages_used, 0);
    EXPECT_EQ(core.Stats().slots_used, 0);
    return steps;
  }

  SpeculationStats Stats() const { return core.Stats().speculation; }
};

// All kinds of parameters, always with a seed.
Request RandomRequest(std::mt19937& rng, int64_t longest) {
  const auto draw = [&](int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(rng);
  };
  Request request;
  const int64_t prompt =
      draw(1, draw(0, 3) == 0 ? longest - 1 : std::min<int64_t>(longest / 2, 60));
  request.prompt = RandomPrompt(rng, prompt);
  request.priority = static_cast<int32_t>(draw(-1, 1));
  if (draw(0, 4) == 0) request.max_drafts = static_cast<int32_t>(draw(0, 3));
  sample::SamplingParams& params = request.params;
  params.max_tokens = draw(1, std::min<int64_t>(longest - prompt, draw(0, 5) == 0 ? 300 : 60));
  params.seed = rng();
  params.temperature = draw(0, 2) == 0 ? 0.0F : 0.8F;
  params.ignore_eos = draw(0, 1) == 0;
  if (draw(0, 3) == 0) params.top_k = 5;
  if (draw(0, 3) == 0) params.top_p = 0.9F;
  if (draw(0, 5) == 0) params.min_p = 0.05F;
  if (draw(0, 5) == 0) params.repetition_penalty = 1.3F;
  if (draw(0, 5) == 0) params.frequency_penalty = 0.2F;
  if (draw(0, 5) == 0) params.presence_penalty = 0.4F;
  if (draw(0, 5) == 0) params.stop_token_ids = {3, 4};
  if (draw(0, 5) == 0) params.min_tokens = std::min<int64_t>(5, params.max_tokens);
  if (draw(0, 5) == 0) params.bad_words = {{1, 2}, {7}};
  if (draw(0, 7) == 0) params.logit_bias = {{5, 3.0F}};
  if (draw(0, 9) == 0) params.allowed_token_ids = {2, 3, 5, 8, 13, 21};
  if (draw(0, 3) == 0) params.num_logprobs = static_cast<int32_t>(draw(0, 4));
  if (draw(0, 5) == 0) params.num_prompt_logprobs = static_cast<int32_t>(draw(0, 2));
  return request;
}

void ExpectSameLogprobs(const std::vector<TokenLogprob>& a, const std::vector<TokenLogprob>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) {
    ASSERT_EQ(a[i].token, b[i].token);
    ASSERT_EQ(a[i].logprob, b[i].logprob);
    ASSERT_EQ(a[i].rank, b[i].rank);
  }
}

void ExpectSame(const Outcome& a, const Outcome& b) {
  ASSERT_EQ(a.ids(), b.ids());
  EXPECT_EQ(a.last->finish, b.last->finish);
  EXPECT_EQ(a.last->stop_token, b.last->stop_token);
  EXPECT_EQ(a.last->record->num_output_tokens, b.last->record->num_output_tokens);
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

// What the request gives alone, without drafts and chunks.
Outcome Plain(const Request& request, int64_t num_pages) {
  Harness h({.max_num_seqs = 1,
             .max_num_batched_tokens = num_pages * kv::kPageTokens,
             .max_logit_rows = num_pages * kv::kPageTokens + 1},
            num_pages, {}, {});
  const RequestId id = h.Add(request);
  h.RunToEnd();
  return h.outcomes[id];
}

class SameTokens : public ::testing::TestWithParam<uint32_t> {};

// 30 requests for each of 70 seeds: 2,100 generations in mixed batches, with chunked prompts,
// preemptions and aborts, good, bad and random drafters, 1 to 7 drafts, fixed and adaptive.
TEST_P(SameTokens, WithAndWithoutDrafts) {
  std::mt19937 rng(GetParam());
  const auto draw = [&](int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(rng);
  };
  const auto num_drafts = static_cast<int32_t>(1 + GetParam() % 7);
  const bool adaptive = draw(0, 1) == 0;
  const SpeculationOptions speculation = adaptive ? Adaptive(num_drafts) : Fixed(num_drafts);
  const double knows[] = {1.0, 0.0, 0.5, 0.9};
  const FakeDrafter drafter{
      .max_drafts = 7,
      .knows = knows[draw(0, 3)],
      .is_confident = draw(0, 3) != 0,
      .kind = draw(0, 1) == 0 ? model::DrafterKind::kDspark : model::DrafterKind::kMtp};
  const int64_t num_pages = draw(3, 8);
  sched::SchedulerLimits limits;
  limits.max_num_seqs = draw(1, 8);
  limits.max_num_batched_tokens = limits.max_num_seqs + draw(0, 1) * draw(0, 200);
  limits.max_logit_rows = limits.max_num_seqs + draw(1, 60);
  limits.policy = draw(0, 1) == 0 ? sched::Policy::kFcfs : sched::Policy::kPriority;
  limits.long_prefill_token_threshold = draw(0, 1) * draw(1, 50);
  limits.watermark = 0.0;
  Harness h(limits, num_pages, speculation, drafter);

  constexpr size_t kRequests = 30;
  std::map<RequestId, Request> sent;
  for (int step = 0; h.core.HasWork() || sent.size() < kRequests; ++step) {
    ASSERT_LT(step, 100000);
    if (sent.size() < kRequests && draw(0, 4) == 0) {
      const Request request = RandomRequest(rng, std::min<int64_t>(num_pages * 256, 700));
      sent[h.Add(request)] = request;
    }
    if (draw(0, 150) == 0 && !sent.empty()) h.core.Abort(1 + rng() % sent.size());
    ASSERT_TRUE(h.core.Step().ok());
    h.core.CheckInvariants();
  }
  EXPECT_EQ(h.core.Stats().pages_used, 0);
  EXPECT_EQ(h.core.Stats().slots_used, 0);
  ASSERT_EQ(h.outcomes.size(), sent.size());
  for (auto& [id, request] : sent) {
    SCOPED_TRACE(id);
    const Outcome& outcome = h.outcomes[id];
    const Outcome plain = Plain(request, num_pages);
    if (outcome.last->finish != FinishReason::kAbort) {
      ExpectSame(outcome, plain);
      continue;
    }
    const std::vector<int32_t> ids = outcome.ids();
    const std::vector<int32_t> all = plain.ids();
    ASSERT_LE(ids.size(), all.size());
    EXPECT_TRUE(std::equal(ids.begin(), ids.end(), all.begin()));
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, SameTokens, ::testing::Range(1U, 71U));

Request Simple(std::vector<int32_t> prompt, int64_t max_tokens, float temperature = 0.0F) {
  Request request;
  request.prompt = std::move(prompt);
  request.params.temperature = temperature;
  request.params.max_tokens = max_tokens;
  request.params.ignore_eos = true;
  request.params.seed = 7;
  return request;
}

TEST(Speculation, APerfectDrafterFillsEveryRound) {
  for (const float temperature : {0.0F, 1.0F}) {
    Harness h({.max_num_seqs = 1, .max_num_batched_tokens = 64}, 4, Fixed(5), {.max_drafts = 5});
    const RequestId id = h.Add(Simple({1, 2, 3}, 61, temperature));
    const int steps = h.RunToEnd();
    EXPECT_EQ(h.outcomes[id].tokens.size(), 61U);
    EXPECT_EQ(steps, 1 + 10);  // the prompt, then six tokens a step
    const SpeculationStats stats = h.Stats();
    EXPECT_EQ(stats.rounds, 10);
    EXPECT_EQ(stats.verified_tokens, 50);
    EXPECT_EQ(stats.accepted_tokens, 50);
    EXPECT_EQ(stats.accepted_per_slot[4], 10);
    EXPECT_EQ(stats.method, SpeculationStats::Method::kDspark);
  }
}

TEST(Speculation, AUselessDrafterCostsNoToken) {
  Harness h({.max_num_seqs = 1, .max_num_batched_tokens = 64}, 4, Fixed(5),
            {.max_drafts = 5, .knows = 0.0});
  const RequestId id = h.Add(Simple({1, 2, 3}, 60));
  h.RunToEnd();
  EXPECT_EQ(h.outcomes[id].ids(), Plain(Simple({1, 2, 3}, 60), 4).ids());
  EXPECT_LT(h.Stats().accepted_tokens, 15);
  EXPECT_GT(h.Stats().verified_tokens, 200);
}

TEST(Speculation, EndsAtEveryRemainderOfMaxTokens) {
  for (int64_t max_tokens = 1; max_tokens <= 14; ++max_tokens) {
    Harness h({.max_num_seqs = 2, .max_num_batched_tokens = 64}, 4, Fixed(5), {.max_drafts = 5});
    const RequestId id = h.Add(Simple({1, 2, 3}, max_tokens));
    h.RunToEnd();
    EXPECT_EQ(h.outcomes[id].tokens.size(), static_cast<size_t>(max_tokens));
    EXPECT_EQ(h.outcomes[id].last->finish, FinishReason::kLength);
  }
}

TEST(Speculation, ReachesTheLastPositionOfTheContext) {
  Harness h({.max_num_seqs = 1, .max_num_batched_tokens = 64, .max_model_len = 512}, 2, Fixed(7),
            {.max_drafts = 7});
  const Request request = Simple({1, 2, 3}, 509);
  const RequestId id = h.Add(request);
  h.RunToEnd();
  EXPECT_EQ(h.outcomes[id].ids(), Plain(request, 2).ids());
  EXPECT_EQ(h.outcomes[id].tokens.size(), 509U);
}

// A stop token at each place of a draft, and behind it nothing is said.
TEST(Speculation, StopsInsideAcceptedDrafts) {
  for (int64_t stop_at = 4; stop_at < 18; ++stop_at) {
    Harness h({.max_num_seqs = 1, .max_num_batched_tokens = 64}, 4, Fixed(5), {.max_drafts = 5});
    h.runner.edit_row = [stop_at](int64_t position, std::span<float> row) {
      row[9] = -100.0F;
      if (position == stop_at) row[9] = 100.0F;
    };
    Request request = Simple({1, 2, 3}, 60);
    request.params.stop_token_ids = {9};
    const RequestId id = h.Add(request);
    h.RunToEnd();
    const Outcome& outcome = h.outcomes[id];
    // The row at a position chooses the token behind it.
    ASSERT_EQ(outcome.tokens.size(), static_cast<size_t>(stop_at - 2 + 1));
    EXPECT_EQ(outcome.tokens.back().token, 9);
    EXPECT_EQ(outcome.last->stop_token, 9);
  }
}

TEST(Speculation, BadLogitsInADraftsRowEndOnlyThatRequest) {
  Harness h({.max_num_seqs = 2, .max_num_batched_tokens = 64}, 8, Fixed(5), {.max_drafts = 5});
  h.runner.edit_row = [](int64_t position, std::span<float> row) {
    if (position == 16) row[3] = std::numeric_limits<float>::quiet_NaN();
  };
  const RequestId good = h.Add(Simple({1, 2}, 8));
  const RequestId bad = h.Add(Simple({1, 2, 3, 4, 5, 6}, 20));
  h.RunToEnd();
  EXPECT_EQ(h.outcomes[good].last->finish, FinishReason::kLength);
  EXPECT_EQ(h.outcomes[bad].last->finish, FinishReason::kError);
  EXPECT_EQ(h.outcomes[bad].tokens.size(), 11U);
  EXPECT_EQ(h.core.Stats().num_bad_logits, 1);
}

TEST(Speculation, RequestsMayAskForFewerDraftsOrNone) {
  for (const auto& options : {Fixed(5), Adaptive(5)}) {
    Harness h({.max_num_seqs = 1, .max_num_batched_tokens = 64}, 4, options, {.max_drafts = 5});
    Request request = Simple({1, 2, 3}, 40);
    request.max_drafts = 0;
    h.Add(request);
    EXPECT_EQ(h.RunToEnd(), 40);
    EXPECT_EQ(h.Stats().verified_tokens, 0);
    request.max_drafts = 2;
    h.Add(request);
    h.RunToEnd();
    EXPECT_GT(h.Stats().accepted_per_slot[1], 0);
    EXPECT_EQ(h.Stats().verified_per_slot[2], 0);
  }
}

TEST(Speculation, SwitchesOffWhatDoesNotPay) {
  SpeculationOptions options = Adaptive(5);
  options.costs.forward = {{1, 10.0}, {100, 1000.0}};  // nothing is shared between rows
  Harness h({.max_num_seqs = 4, .max_num_batched_tokens = 64}, 16, options,
            {.max_drafts = 5, .knows = 0.2, .is_confident = false});
  for (int i = 0; i < 4; ++i) h.Add(Simple({1, 2, i}, 900));
  h.RunToEnd();
  const SpeculationStats stats = h.Stats();
  EXPECT_EQ(stats.mode, SpeculationStats::Mode::kOff);
  EXPECT_GT(stats.steps[0], 600);
  EXPECT_LT(stats.verified_tokens, 600);
  EXPECT_LE(stats.gain, 1.03);
}

TEST(Speculation, DraftsTakeNoPageFromOthers) {
  // Two pages: one request fills the first to its end and may not draft beyond it.
  Harness h({.max_num_seqs = 2, .max_num_batched_tokens = 512, .watermark = 0.0}, 2, Fixed(5),
            {.max_drafts = 5});
  const Request a = Simple(std::vector<int32_t>(250, 1), 200);
  const Request b = Simple(std::vector<int32_t>(100, 2), 100);
  const RequestId first = h.Add(a);
  const RequestId second = h.Add(b);
  h.RunToEnd();
  EXPECT_EQ(h.outcomes[first].ids(), Plain(a, 2).ids());
  EXPECT_EQ(h.outcomes[second].ids(), Plain(b, 2).ids());
}

TEST(Speculation, PromptsAreNotStarvedByDrafts) {
  Harness h({.max_num_seqs = 4, .max_num_batched_tokens = 12, .max_logit_rows = 12}, 8, Fixed(7),
            {.max_drafts = 7});
  for (int i = 0; i < 2; ++i) h.Add(Simple({1, 2, i}, 400));
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(h.core.Step().ok());
  Request late = Simple(std::vector<int32_t>(40, 3), 2);
  late.params.num_prompt_logprobs = 1;
  const RequestId id = h.Add(late);
  for (int i = 0; i < 30; ++i) ASSERT_TRUE(h.core.Step().ok());
  EXPECT_TRUE(h.outcomes[id].last.has_value());
  h.RunToEnd();
}

TEST(Speculation, SyntheticAcceptanceHasTheLengthThatWasAskedFor) {
  SpeculationOptions options = Fixed(5);
  options.synthetic_rates = {1.0, 1.0, 0.5, 0.0, 0.0};
  Harness h({.max_num_seqs = 4, .max_num_batched_tokens = 64}, 16, options,
            {.max_drafts = 5, .knows = 0.0});
  for (int i = 0; i < 4; ++i) {
    Request request = Simple({1, 2, i}, 800, 1.0F);
    request.params.seed = i;
    h.Add(request);
  }
  h.RunToEnd();
  const SpeculationStats stats = h.Stats();
  EXPECT_NEAR(static_cast<double>(stats.accepted_tokens) / static_cast<double>(stats.rounds), 2.5,
              0.05);
}

// Under rejection the text is another, but as likely: the first three tokens of many seeds.
TEST(Speculation, RejectionKeepsTheDistribution) {
  constexpr int kDraws = 6000;
  SpeculationOptions rejection = Fixed(3);
  rejection.verification = sample::VerifyMethod::kRejection;
  std::map<std::vector<int32_t>, std::array<double, 2>> counts;
  for (const bool with_drafts : {false, true}) {
    Harness h({.max_num_seqs = 64, .max_num_batched_tokens = 1024}, 64,
              with_drafts ? rejection : SpeculationOptions{},
              with_drafts ? FakeDrafter{.max_drafts = 3, .knows = 0.5} : FakeDrafter{});
    std::vector<RequestId> ids;
    for (int i = 0; i < kDraws; ++i) {
      Request request = Simple({1, 2, 3}, 4, 1.0F);
      request.params.allowed_token_ids = {4, 5, 6, 7};
      request.params.seed = static_cast<uint64_t>(i) + (with_drafts ? 1000000 : 0);
      ids.push_back(h.Add(request));
    }
    h.RunToEnd();
    for (const RequestId id : ids) counts[h.outcomes[id].ids()][with_drafts ? 1 : 0] += 1.0;
    if (with_drafts) {
      EXPECT_GT(h.Stats().accepted_tokens, kDraws / 2);
    }
  }
  double chi = 0.0;
  int cells = 0;
  for (const auto& [text, pair] : counts) {
    if (pair[0] + pair[1] < 20.0) continue;
    chi += (pair[0] - pair[1]) * (pair[0] - pair[1]) / (pair[0] + pair[1]);
    ++cells;
  }
  EXPECT_GT(cells, 40);
  EXPECT_LT(chi, cells + 3.8 * std::sqrt(2.0 * cells) + 10.0);
}

TEST(Speculation, RefusesWhatCannotWork) {
  const auto refuse = [](const SpeculationOptions& options, int64_t max_drafts, const char* text) {
    const absl::Status status = ValidateSpeculation(options, max_drafts);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(status.message()), HasSubstr(text));
  };
  refuse(Fixed(5), 0, "no draft model is loaded");
  refuse(Fixed(6), 5, "num_speculative_tokens is 6, but this draft model makes at most 5");
  SpeculationOptions synthetic = Adaptive(3);
  synthetic.synthetic_rates = {1.0};
  refuse(synthetic, 5, "\"adaptive\": false");
  refuse({.num_drafts = 2}, 5, "measured costs");
  EXPECT_TRUE(ValidateSpeculation(SpeculationOptions{}, 0).ok());
  EXPECT_TRUE(ValidateSpeculation(Adaptive(5), 5).ok());
}

}  // namespace
}  // namespace fulgur::engine

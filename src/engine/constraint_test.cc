// Formats of answers in the engine: kept with and without drafts, alone and in a batch.
#include <gmock/gmock.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <random>
#include <vector>

#include "engine/core_harness.h"

namespace fulgur::engine {
namespace {

using sample::AllowedTokens;

constexpr int32_t kVocab = FakeRunner::kVocab;
constexpr int32_t kEos = 0;

// A format that is easily held against a text: each token is at most a few above the one before,
// and the answer ends behind a multiple of four tokens.
class Stairs : public sample::TokenConstraint {
 public:
  explicit Stairs(std::optional<int32_t> starts_behind) : starts_behind_(starts_behind) {}

  static constexpr int32_t kHighestStep = 5;
  static constexpr int kFlight = 4;

  static bool Follows(int32_t before, int32_t token) {
    const int32_t step = (token - before + kVocab) % kVocab;
    return token != kEos && step >= 1 && step <= kHighestStep;
  }

  bool active() const override { return !starts_behind_; }

  absl::StatusOr<AllowedTokens> Allowed() override {
    bits_ = 0;
    for (int32_t token = 0; token < kVocab; ++token) {
      if (Follows(last_, token)) bits_ |= uint64_t{1} << token;
    }
    return AllowedTokens{.bits = {&bits_, 1}, .end = num_said_ % kFlight == 0};
  }

  void Accept(int32_t token) override {
    if (!starts_behind_) {
      last_ = token;
      ++num_said_;
    }
    if (token == starts_behind_) starts_behind_.reset();
  }

 private:
  std::optional<int32_t> starts_behind_;
  int32_t last_ = 1;
  int num_said_ = 0;
  uint64_t bits_ = 0;
};

struct Wanted {
  Request request;
  bool has_format = false;
  std::optional<int32_t> starts_behind;
};

Wanted RandomWish(std::mt19937& rng) {
  Wanted wish;
  wish.request.prompt = RandomPrompt(rng, 1 + static_cast<int64_t>(rng() % 40));
  wish.request.params.max_tokens = 1 + static_cast<int64_t>(rng() % 60);
  wish.request.params.temperature = rng() % 2 == 0 ? 0.0F : 1.0F;
  wish.request.params.seed = rng();
  wish.has_format = rng() % 3 != 0;
  // Any token may be the end of the reasoning: it falls on every place of a block of drafts.
  if (rng() % 2 == 0) wish.starts_behind = 1 + static_cast<int32_t>(rng() % 8);
  return wish;
}

Request ToRequest(const Wanted& wish) {
  Request request = wish.request;
  if (wish.has_format) request.constraint = std::make_shared<Stairs>(wish.starts_behind);
  return request;
}

void ExpectFormat(const Wanted& wish, const Outcome& outcome) {
  std::vector<int32_t> said = outcome.ids();
  if (wish.starts_behind) {
    const auto start = std::find(said.begin(), said.end(), *wish.starts_behind);
    said.erase(said.begin(), start == said.end() ? start : start + 1);
  }
  if (outcome.last->finish == FinishReason::kStop && !said.empty()) {
    EXPECT_EQ((said.size() - 1) % Stairs::kFlight, 0U);
    said.pop_back();
  }
  int32_t before = 1;
  for (const int32_t token : said) {
    EXPECT_TRUE(Stairs::Follows(before, token)) << before << " then " << token;
    before = token;
  }
}

std::vector<std::vector<int32_t>> Answers(const std::vector<Wanted>& wishes,
                                          const SpeculationOptions& speculation) {
  const sched::SchedulerLimits limits = {.max_num_seqs = 6, .max_num_batched_tokens = 64};
  CoreHarness harness(limits, 4, speculation,
                      {.max_drafts = speculation.enabled() ? 5 : 0, .knows = 0.8});
  for (const Wanted& wish : wishes) harness.Add(ToRequest(wish));
  while (harness.core.HasWork()) EXPECT_TRUE(harness.core.Step().ok());
  std::vector<std::vector<int32_t>> answers;
  for (size_t i = 0; i < wishes.size(); ++i) {
    const Outcome& outcome = harness.outcomes[i + 1];
    answers.push_back(outcome.ids());
    if (wishes[i].has_format) ExpectFormat(wishes[i], outcome);
  }
  return answers;
}

TEST(ConstraintTest, FormatsAreKeptAndDraftsChangeNothing) {
  std::mt19937 rng(5);
  for (int round = 0; round < 20; ++round) {
    std::vector<Wanted> wishes;
    for (int i = 0; i < 12; ++i) wishes.push_back(RandomWish(rng));
    const auto plain = Answers(wishes, {});
    for (const int32_t num_drafts : {1, 3, 5}) {
      EXPECT_EQ(Answers(wishes, {.num_drafts = num_drafts, .adaptive = false}), plain);
    }
  }
}

TEST(ConstraintTest, FormatsAreKeptUnderRejection) {
  std::mt19937 rng(6);
  for (int round = 0; round < 20; ++round) {
    std::vector<Wanted> wishes;
    for (int i = 0; i < 12; ++i) wishes.push_back(RandomWish(rng));
    Answers(wishes,
            {.num_drafts = 4, .adaptive = false, .verification = sample::VerifyMethod::kRejection});
  }
}

TEST(ConstraintTest, ARequestWhoseFormatFailsEndsAlone) {
  class Broken : public sample::TokenConstraint {
   public:
    bool active() const override { return true; }
    absl::StatusOr<AllowedTokens> Allowed() override {
      return absl::ResourceExhaustedError("the requested format is too ambiguous");
    }
    void Accept(int32_t) override {}
  };
  CoreHarness harness({.max_num_seqs = 2, .max_num_batched_tokens = 64}, 4);
  Request broken, good;
  broken.prompt = good.prompt = {1, 2, 3};
  broken.constraint = std::make_shared<Broken>();
  good.params.ignore_eos = true;
  harness.Add(std::move(broken));
  harness.Add(std::move(good));
  while (harness.core.HasWork()) ASSERT_TRUE(harness.core.Step().ok());
  EXPECT_EQ(harness.outcomes[1].last->finish, FinishReason::kError);
  EXPECT_EQ(harness.outcomes[1].last->error, "the requested format is too ambiguous");
  EXPECT_EQ(harness.outcomes[2].last->finish, FinishReason::kLength);
  EXPECT_EQ(harness.core.Stats().pages_used, 0);
}

TEST(ConstraintTest, IsRefusedWhereDraftsStandByDecree) {
  CoreHarness harness({.max_num_seqs = 2, .max_num_batched_tokens = 64}, 4,
                      {.num_drafts = 2, .adaptive = false, .synthetic_rates = {0.9, 0.5}},
                      {.max_drafts = 2});
  Request request;
  request.prompt = {1};
  request.constraint = std::make_shared<Stairs>(std::nullopt);
  EXPECT_EQ(harness.core.CheckRequest(request).code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace fulgur::engine

#include "sample/logprobs.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace fulgur::sample {
namespace {

TEST(Logprobs, MatchTheDefinition) {
  const std::vector<float> logits = {1.0F, 3.0F, 2.0F, 3.0F, -50.0F};
  double sum = 0.0;
  for (const float logit : logits) sum += std::exp(static_cast<double>(logit));
  const double log_sum_exp = LogSumExp(logits);
  EXPECT_NEAR(log_sum_exp, std::log(sum), 1e-6);

  const TokenLogprob entry = LogprobOf(logits, log_sum_exp, 2);
  EXPECT_EQ(entry.token, 2);
  EXPECT_NEAR(entry.logprob, 2.0 - std::log(sum), 1e-6);
  EXPECT_EQ(entry.rank, 3);
  EXPECT_EQ(LogprobOf(logits, log_sum_exp, 1).rank, 1);  // of two equal ones the lower id is first
  EXPECT_EQ(LogprobOf(logits, log_sum_exp, 3).rank, 2);
}

TEST(Logprobs, LargeLogitsDoNotOverflow) {
  const std::vector<float> logits = {3e38F, -3e38F, 0.0F};
  const double log_sum_exp = LogSumExp(logits);
  EXPECT_EQ(LogprobOf(logits, log_sum_exp, 0).logprob, 0.0F);
}

TEST(Logprobs, TopOnesAreOrderedAndRanked) {
  std::mt19937 rng(5);
  std::vector<float> logits(1000);
  for (float& logit : logits) logit = std::round(std::normal_distribution<float>(0, 4)(rng));
  const double log_sum_exp = LogSumExp(logits);
  for (const int64_t count : {0, 1, 20, 1000, -1}) {
    std::vector<TokenLogprob> top;
    AppendTopLogprobs(logits, log_sum_exp, count, top);
    ASSERT_EQ(top.size(), count < 0 ? 1000U : static_cast<size_t>(count));
    double mass = 0.0;
    for (size_t i = 0; i < top.size(); ++i) {
      const TokenLogprob expected = LogprobOf(logits, log_sum_exp, top[i].token);
      EXPECT_EQ(top[i].logprob, expected.logprob);
      EXPECT_EQ(top[i].rank, expected.rank);
      EXPECT_EQ(top[i].rank, static_cast<int32_t>(i) + 1);
      mass += std::exp(top[i].logprob);
    }
    if (top.size() == 1000) {
      EXPECT_NEAR(mass, 1.0, 1e-5);
    }
  }
}

}  // namespace
}  // namespace fulgur::sample

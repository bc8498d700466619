#include "sample/sampler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <numeric>
#include <random>

#include "sample/noise.h"
#include "sample/order.h"

namespace fulgur::sample {
namespace {

using Row = std::vector<float>;

Row RandomRow(uint32_t seed, size_t size, float spread) {
  std::mt19937 rng(seed);
  Row row(size);
  for (float& logit : row) logit = std::normal_distribution<float>(0.0F, spread)(rng);
  return row;
}

struct Case {
  SamplingParams params;
  std::vector<int32_t> prompt;
  std::vector<int32_t> output;
  std::vector<int32_t> eos;

  TokenContext Context(uint64_t seed) const { return {params, seed, prompt, output, eos}; }
};

// The law of the next token, worked out in the plainest way: sort everything, in double.
std::vector<double> ExpectedLaw(const Row& logits, const Case& c) {
  constexpr double kMasked = -std::numeric_limits<double>::infinity();
  std::vector<double> score(logits.begin(), logits.end());
  const SamplingParams& p = c.params;
  if (!p.allowed_token_ids.empty()) {
    for (size_t v = 0; v < score.size(); ++v) {
      if (!std::count(p.allowed_token_ids.begin(), p.allowed_token_ids.end(), v)) {
        score[v] = kMasked;
      }
    }
  }
  for (const auto& word : p.bad_words) {
    const size_t before = word.size() - 1;
    if (before <= c.output.size() &&
        std::equal(word.begin(), word.end() - 1, c.output.end() - static_cast<long>(before))) {
      score[static_cast<size_t>(word.back())] = kMasked;
    }
  }
  if (static_cast<int64_t>(c.output.size()) < p.min_tokens) {
    for (const int32_t token : c.eos) score[static_cast<size_t>(token)] = kMasked;
    for (const int32_t token : p.stop_token_ids) score[static_cast<size_t>(token)] = kMasked;
  }
  for (const auto& [token, bias] : p.logit_bias) score[static_cast<size_t>(token)] += bias;
  for (size_t v = 0; v < score.size(); ++v) {
    const auto in_prompt = std::count(c.prompt.begin(), c.prompt.end(), v);
    const auto in_output = std::count(c.output.begin(), c.output.end(), v);
    if (in_prompt + in_output > 0) {
      score[v] = score[v] > 0 ? score[v] / p.repetition_penalty : score[v] * p.repetition_penalty;
    }
    if (in_output > 0) {
      score[v] -= p.frequency_penalty * static_cast<double>(in_output) + p.presence_penalty;
    }
  }
  std::vector<size_t> order(score.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return score[a] > score[b]; });
  std::vector<double> law(score.size(), 0.0);
  if (p.temperature == 0.0F) {
    law[order[0]] = 1.0;
    return law;
  }
  const auto weight = [&](size_t v) {
    return std::exp((score[v] - score[order[0]]) / p.temperature);
  };
  size_t kept = order.size();
  if (p.top_k > 0) kept = std::min(kept, static_cast<size_t>(p.top_k));
  while (weight(order[kept - 1]) < p.min_p * (1 - 1e-6)) --kept;
  double total = 0.0;
  for (size_t i = 0; i < kept; ++i) total += weight(order[i]);
  double mass = 0.0;
  size_t nucleus = 0;
  while (nucleus < kept && mass < p.top_p * total) mass += weight(order[nucleus++]);
  for (size_t i = 0; i < nucleus; ++i) law[order[i]] = weight(order[i]) / mass;
  return law;
}

// Pearson's statistic, with rare tokens pooled, in standard deviations above its mean. Tokens that
// the law excludes must never appear.
double ChiSquareExcess(const std::vector<double>& law, const std::map<int32_t, int>& counts,
                       int draws) {
  double statistic = 0.0;
  int cells = 0;
  double rare = 0.0;
  int rare_count = 0;
  for (size_t v = 0; v < law.size(); ++v) {
    const auto found = counts.find(static_cast<int32_t>(v));
    const int count = found == counts.end() ? 0 : found->second;
    if (law[v] == 0.0) {
      EXPECT_EQ(count, 0) << "token " << v << " is excluded";
    }
    const double expected = law[v] * draws;
    if (expected < 10.0) {
      rare += expected;
      rare_count += count;
      continue;
    }
    statistic += (count - expected) * (count - expected) / expected;
    ++cells;
  }
  if (rare >= 10.0) {
    statistic += (rare_count - rare) * (rare_count - rare) / rare;
    ++cells;
  }
  const double freedom = cells - 1;
  return freedom <= 0 ? 0.0 : (statistic - freedom) / std::sqrt(2.0 * freedom);
}

void ExpectLaw(const Row& logits, const Case& c, int draws = 20000) {
  Sampler sampler(static_cast<int64_t>(logits.size()));
  std::map<int32_t, int> counts;
  for (int seed = 0; seed < draws; ++seed) {
    const auto token = sampler.Sample(logits, c.Context(static_cast<uint64_t>(seed)));
    ASSERT_TRUE(token.ok()) << token.status();
    ++counts[*token];
  }
  EXPECT_LT(ChiSquareExcess(ExpectedLaw(logits, c), counts, draws), 5.0);
}

TEST(Sampler, GreedyTakesTheLargestAndTheLowestIdOfEquals) {
  Sampler sampler(6);
  Case c;
  c.params.temperature = 0.0F;
  EXPECT_EQ(*sampler.Sample(Row{0, 5, 7, 7, 1, -3}, c.Context(1)), 2);
  c.params.top_k = 1;
  c.params.top_p = 0.1F;
  EXPECT_EQ(*sampler.Sample(Row{0, 5, 7, 7, 1, -3}, c.Context(9)), 2);
}

TEST(Sampler, TopKOneIsGreedyAtAnyTemperature) {
  Sampler sampler(100);
  Case c;
  c.params.temperature = 5.0F;
  c.params.top_k = 1;
  for (uint32_t seed = 0; seed < 50; ++seed) {
    const Row row = RandomRow(seed, 100, 1.0F);
    EXPECT_EQ(*sampler.Sample(row, c.Context(seed)), ArgMax(row));
  }
}

TEST(Sampler, FollowsTheSoftmax) {
  Case c;
  ExpectLaw(RandomRow(1, 50, 1.5F), c);
  c.params.temperature = 0.4F;
  ExpectLaw(RandomRow(2, 50, 1.5F), c);
  c.params.temperature = 3.0F;
  ExpectLaw(RandomRow(3, 997, 2.0F), c, 60000);
}

TEST(Sampler, FollowsTheLawOfEachParameter) {
  const Row row = RandomRow(4, 60, 2.0F);
  const std::vector<std::function<void(Case&)>> changes = {
      [](Case& c) { c.params.top_k = 7; },
      [](Case& c) { c.params.top_p = 0.8F; },
      [](Case& c) { c.params.top_p = 0.999F; },
      [](Case& c) { c.params.top_p = 0.01F; },
      [](Case& c) { c.params.min_p = 0.1F; },
      [](Case& c) { c.params.min_p = 1.0F; },
      [](Case& c) { c.params.min_p = 0.05F, c.params.top_p = 0.7F; },
      [](Case& c) { c.params.min_p = 0.02F, c.params.top_k = 10, c.params.top_p = 0.9F; },
      [](Case& c) { c.params.top_k = 60; },
      [](Case& c) {
        c.params.logit_bias = {{3, 4.0F}, {5, -100.0F}};
      },
      [](Case& c) {
        c.params.allowed_token_ids = {1, 2, 30, 59};
      },
      [](Case& c) {
        c.params.allowed_token_ids = {1, 2, 30, 59}, c.params.top_k = 50;
      },
      [](Case& c) {
        c.params.allowed_token_ids = {1, 2, 30, 59}, c.params.top_p = 0.9F;
      },
      [](Case& c) {
        c.params.bad_words = {{7}, {4, 8}, {5, 9}, {1, 2, 3, 4, 5, 6}};
      },
      [](Case& c) {
        c.params.min_tokens = 10, c.params.stop_token_ids = {1, 2};
      },
      [](Case& c) { c.params.repetition_penalty = 1.7F; },
      [](Case& c) { c.params.repetition_penalty = 0.5F; },
      [](Case& c) { c.params.presence_penalty = 1.5F; },
      [](Case& c) { c.params.frequency_penalty = -0.5F; },
      [](Case& c) {
        c.params.repetition_penalty = 1.2F, c.params.frequency_penalty = 0.3F;
        c.params.presence_penalty = -0.4F, c.params.temperature = 0.7F, c.params.top_p = 0.95F;
      },
  };
  for (size_t i = 0; i < changes.size(); ++i) {
    SCOPED_TRACE(i);
    Case c;
    c.prompt = {3, 3, 10, 11, 12};
    c.output = {20, 21, 20, 20, 4};
    c.eos = {0};
    changes[i](c);
    ExpectLaw(row, c, 12000);
  }
}

// A large vocabulary with few likely tokens: most are never looked at closely.
TEST(Sampler, SkippingTokensThatCannotWinChangesNothing) {
  const Row row = RandomRow(6, 20000, 6.0F);
  Sampler sampler(20000);
  Case c;
  const float top = row[static_cast<size_t>(ArgMax(row))];
  for (uint64_t seed = 0; seed < 200; ++seed) {
    const PositionNoise noise(seed, 0);
    int32_t expected = 0;
    double best = -1e300;
    for (int32_t v = 0; v < 20000; ++v) {
      const float score = row[static_cast<size_t>(v)] - top;
      const double value = score + noise.Gumbel(v);
      if (value > best) best = value, expected = v;
    }
    EXPECT_EQ(*sampler.Sample(row, c.Context(seed)), expected);
  }
}

// Large vocabularies, flat and peaked, cut anywhere: only what the law allows is ever drawn.
TEST(Sampler, CutsAreExact) {
  for (const float spread : {0.01F, 1.0F, 8.0F}) {
    const Row row = RandomRow(9, 5000, spread);
    Sampler sampler(5000);
    for (const float top_p : {0.001F, 0.3F, 0.95F, 0.99999994F}) {
      for (const int32_t top_k : {0, 40, 4000}) {
        Case c;
        c.params.top_p = top_p;
        c.params.top_k = top_k;
        const std::vector<double> law = ExpectedLaw(row, c);
        for (uint64_t seed = 0; seed < 20; ++seed) {
          EXPECT_GT(law[static_cast<size_t>(*sampler.Sample(row, c.Context(seed)))], 0.0);
        }
      }
    }
  }
}

// The winner among all is the winner among those kept, if it is one of them: noise belongs to the
// token, not to its place in a list.
TEST(Sampler, TruncationOnlyRemovesTokens) {
  const Row row = RandomRow(8, 500, 1.0F);
  Sampler sampler(500);
  Case all;
  Case some;
  some.params.top_p = 0.9F;
  int same = 0;
  for (uint64_t seed = 0; seed < 300; ++seed) {
    const int32_t first = *sampler.Sample(row, all.Context(seed));
    const int32_t second = *sampler.Sample(row, some.Context(seed));
    if (ExpectedLaw(row, some)[static_cast<size_t>(first)] > 0.0) {
      EXPECT_EQ(first, second);
      ++same;
    }
  }
  EXPECT_GT(same, 200);
}

TEST(Sampler, PositionAndSeedDecide) {
  const Row row(100, 0.0F);
  Sampler sampler(100);
  Case c;
  const int32_t first = *sampler.Sample(row, c.Context(3));
  Sampler other(100);
  EXPECT_EQ(*other.Sample(row, c.Context(3)), first);
  Case moved = c;  // the same position, split differently between prompt and output
  c.prompt = {1, 2};
  moved.prompt = {1};
  moved.output = {2};
  EXPECT_EQ(*sampler.Sample(row, c.Context(3)), *sampler.Sample(row, moved.Context(3)));
}

TEST(Sampler, RefusesWhatIsNotANumber) {
  Sampler sampler(10);
  Case c;
  for (const float bad :
       {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity(),
        -std::numeric_limits<float>::infinity()}) {
    for (const float temperature : {0.0F, 1.0F}) {
      Row row(10, 1.0F);
      row[4] = bad;
      c.params.temperature = temperature;
      EXPECT_EQ(sampler.Sample(row, c.Context(1)).status().code(), absl::StatusCode::kInternal);
    }
  }
}

TEST(Sampler, SaysWhenNothingIsLeft) {
  Sampler sampler(10);
  Case c;
  c.params.allowed_token_ids = {4};
  c.params.bad_words = {{4}};
  EXPECT_EQ(sampler.Sample(Row(10, 1.0F), c.Context(1)).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(Sampler, PenaltiesLeaveNoTrace) {
  Sampler sampler(40);
  const Row row = RandomRow(3, 40, 1.0F);
  Case plain;
  plain.prompt = {1, 2, 3};
  plain.output = {4, 4, 4};
  Case penalised = plain;
  penalised.params.frequency_penalty = 2.0F;
  penalised.params.repetition_penalty = 3.0F;
  const int32_t before = *sampler.Sample(row, plain.Context(5));
  ASSERT_TRUE(sampler.Sample(row, penalised.Context(5)).ok());
  EXPECT_EQ(*sampler.Sample(row, plain.Context(5)), before);
}

}  // namespace
}  // namespace fulgur::sample

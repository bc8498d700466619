#include "sample/verifier.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <functional>
#include <map>
#include <random>

namespace fulgur::sample {
namespace {

constexpr int64_t kVocab = 12;

using Logits = std::vector<float>;
// Logits behind a text; what stands for a model in these tests.
using Model = std::function<Logits(std::span<const int32_t>)>;

Model RandomModel(uint32_t seed, float flatness, int64_t vocab = kVocab) {
  return [seed, flatness, vocab](std::span<const int32_t> text) {
    uint32_t state = seed;
    for (const int32_t token : text) state = state * 31 + static_cast<uint32_t>(token) + 1;
    std::mt19937 rng(state);
    Logits logits;
    for (int64_t v = 0; v < vocab; ++v) {
      logits.push_back(std::normal_distribution<float>(0, flatness)(rng));
    }
    return logits;
  };
}

// A drafter that knows the model in part.
Model Near(Model model, Model other, float share) {
  return [=](std::span<const int32_t> text) {
    Logits a = model(text);
    const Logits b = other(text);
    for (size_t v = 0; v < a.size(); ++v) a[v] = (1 - share) * a[v] + share * b[v];
    return a;
  };
}

struct Episode {
  std::vector<int32_t> text;
  int drafted = 0;
  int accepted = 0;
};

// Says `length` tokens, with up to `num_drafts` drafts a round. num_drafts may depend on the text.
Episode Speculate(const Model& target, const Model& drafter, VerifyMethod method,
                  const SamplingParams& params, uint64_t seed, size_t length,
                  const std::function<int(size_t)>& num_drafts) {
  const auto vocab = static_cast<int64_t>(target({}).size());
  Verifier verifier(method, vocab);
  const std::vector<int32_t> eos;
  Episode episode;
  std::vector<int32_t>& text = episode.text;
  const auto context = [&] {
    return TokenContext{
        .params = params, .seed = seed, .prompt = {}, .output = text, .eos_tokens = eos};
  };
  while (text.size() < length) {
    std::vector<int32_t> drafts;
    std::vector<Logits> probabilities;
    const size_t start = text.size();
    for (int i = 0; i < num_drafts(start); ++i) {
      probabilities.emplace_back(static_cast<size_t>(vocab));
      drafts.push_back(*verifier.Propose(drafter(text), context(), probabilities.back()));
      text.push_back(drafts.back());
    }
    text.resize(start);
    size_t row = 0;
    for (; row < drafts.size() && text.size() < length; ++row) {
      ++episode.drafted;
      const Verdict verdict =
          *verifier.Verify(target(text), context(), {drafts[row], probabilities[row]});
      text.push_back(verdict.token);
      if (!verdict.stands) break;
      ++episode.accepted;
    }
    if (row == drafts.size() && text.size() < length) {
      text.push_back(*verifier.Sample(target(text), context()));
    }
  }
  return episode;
}

SamplingParams Params(int kind) {
  SamplingParams params;
  if (kind == 0) params.temperature = 0.0F;
  if (kind == 1) params.temperature = 1.0F;
  if (kind == 2) params.temperature = 0.7F, params.top_k = 5;
  if (kind == 3) params.temperature = 1.5F, params.top_p = 0.8F, params.min_p = 0.05F;
  if (kind == 4) params.repetition_penalty = 1.5F, params.frequency_penalty = 0.5F;
  if (kind == 5) params.temperature = 0.0F, params.presence_penalty = 1.0F;
  if (kind == 6) params.bad_words = {{1, 2}, {3}}, params.logit_bias = {{4, 1.0F}};
  if (kind == 7) params.allowed_token_ids = {1, 2, 5, 7}, params.min_tokens = 10;
  return params;
}

TEST(ExactMatch, SaysWhatPlainSamplingSays) {
  const Model target = RandomModel(1, 1.5F);
  const Model near = Near(target, RandomModel(2, 1.5F), 0.3F);
  for (int kind = 0; kind < 8; ++kind) {
    int accepted = 0;
    for (uint64_t seed = 0; seed < 20; ++seed) {
      const auto run = [&](const Model& drafter, int drafts) {
        return Speculate(target, drafter, VerifyMethod::kExactMatch, Params(kind), seed, 40,
                         [drafts](size_t) { return drafts; });
      };
      const Episode plain = run(target, 0);
      EXPECT_EQ(plain.accepted, 0);
      for (const int drafts : {1, 3, 7}) {
        const Episode with = run(near, drafts);
        ASSERT_EQ(with.text, plain.text) << "kind " << kind << " seed " << seed;
        accepted += with.accepted;
        const Episode same = run(target, drafts);
        ASSERT_EQ(same.text, plain.text);
        EXPECT_EQ(same.accepted, same.drafted);  // the same logits, the same noise
        ASSERT_EQ(run(RandomModel(9, 3.0F), drafts).text, plain.text);
      }
    }
    EXPECT_GT(accepted, 100) << "kind " << kind;
  }
}

// Chi-square of observed counts against probabilities; the 1e-4 quantile is about
// n + 3.8 sqrt(2 n) + 10.
void ExpectDrawnFrom(const std::map<std::vector<int32_t>, int>& counts,
                     const std::map<std::vector<int32_t>, double>& law, int draws) {
  double chi = 0.0;
  double rest_expected = 0.0;
  double rest_seen = 0.0;
  int cells = 0;
  for (const auto& [text, probability] : law) {
    const double expected = probability * draws;
    const auto found = counts.find(text);
    const double seen = found == counts.end() ? 0.0 : found->second;
    if (expected < 10.0) {
      rest_expected += expected;
      rest_seen += seen;
      continue;
    }
    chi += (seen - expected) * (seen - expected) / expected;
    ++cells;
  }
  if (rest_expected > 5.0) {
    chi += (rest_seen - rest_expected) * (rest_seen - rest_expected) / rest_expected;
    ++cells;
  }
  for (const auto& [text, count] : counts) EXPECT_TRUE(law.contains(text)) << count;
  EXPECT_LT(chi, cells + 3.8 * std::sqrt(2.0 * cells) + 10.0) << cells << " cells";
}

// The exact probabilities of all texts of a length.
void AddTexts(const Model& target, const SamplingParams& params, size_t length, double probability,
              std::vector<int32_t>& text, std::map<std::vector<int32_t>, double>& law) {
  if (text.size() == length) {
    law[text] = probability;
    return;
  }
  const Logits logits = target(text);
  Sampler sampler(static_cast<int64_t>(logits.size()));
  std::vector<float> p(logits.size());
  ASSERT_TRUE(sampler
                  .Distribution(
                      logits, {.params = params, .prompt = {}, .output = text, .eos_tokens = {}}, p)
                  .ok());
  for (size_t v = 0; v < p.size(); ++v) {
    if (p[v] == 0.0F) continue;
    text.push_back(static_cast<int32_t>(v));
    AddTexts(target, params, length, probability * p[v], text, law);
    text.pop_back();
  }
}

TEST(Rejection, KeepsTheLawOfTexts) {
  constexpr int kDraws = 40000;
  constexpr size_t kLength = 3;
  constexpr int64_t kSmallVocab = 5;
  const Model target = RandomModel(11, 1.2F, kSmallVocab);
  const Model near = Near(target, RandomModel(12, 1.5F, kSmallVocab), 0.4F);
  for (const int kind : {1, 2, 3, 4}) {
    SamplingParams params = Params(kind);
    if (params.top_k > 0) params.top_k = 3;
    std::map<std::vector<int32_t>, double> law;
    std::vector<int32_t> text;
    AddTexts(target, params, kLength, 1.0, text, law);
    std::map<std::vector<int32_t>, int> counts;
    int accepted = 0;
    for (int draw = 0; draw < kDraws; ++draw) {
      const Episode episode =
          Speculate(target, near, VerifyMethod::kRejection, params, static_cast<uint64_t>(draw),
                    kLength, [&](size_t at) { return (draw + static_cast<int>(at)) % 4; });
      ++counts[episode.text];
      accepted += episode.accepted;
    }
    SCOPED_TRACE(kind);
    ExpectDrawnFrom(counts, law, kDraws);
    EXPECT_GT(accepted, kDraws / 2);
  }
}

TEST(Rejection, AcceptsAsOftenAsTheDistributionsOverlap) {
  const Model target = RandomModel(21, 1.0F);
  const Model near = Near(target, RandomModel(22, 1.0F), 0.5F);
  const SamplingParams params = Params(1);
  Sampler sampler(kVocab);
  std::vector<float> p(kVocab);
  std::vector<float> q(kVocab);
  const TokenContext start{.params = params, .prompt = {}, .output = {}, .eos_tokens = {}};
  ASSERT_TRUE(sampler.Distribution(target({}), start, p).ok());
  ASSERT_TRUE(sampler.Distribution(near({}), start, q).ok());
  double overlap = 0.0;
  for (size_t v = 0; v < p.size(); ++v) overlap += std::min(p[v], q[v]);
  constexpr int kDraws = 20000;
  int accepted = 0;
  for (int draw = 0; draw < kDraws; ++draw) {
    accepted += Speculate(target, near, VerifyMethod::kRejection, params,
                          static_cast<uint64_t>(draw), 1, [](size_t) { return 1; })
                    .accepted;
  }
  EXPECT_NEAR(static_cast<double>(accepted) / kDraws, overlap, 0.015);
}

// With disjoint supports, equal distributions and one-hot rows.
TEST(Rejection, EdgesOfTheResidual) {
  Verifier verifier(VerifyMethod::kRejection, 4);
  const SamplingParams params = Params(1);
  const std::vector<int32_t> none;
  for (uint64_t seed = 0; seed < 200; ++seed) {
    const TokenContext context{
        .params = params, .seed = seed, .prompt = none, .output = none, .eos_tokens = none};
    const std::vector<float> low = {5, 5, -50, -50};
    const std::vector<float> high = {-50, -50, 5, 5};
    const std::vector<float> on_low = {0.5F, 0.5F, 0, 0};
    const std::vector<float> on_one = {1, 0, 0, 0};
    const auto disjoint = verifier.Verify(high, context, {0, on_low});
    EXPECT_FALSE(disjoint->stands);
    EXPECT_GE(disjoint->token, 2);
    const auto equal = verifier.Verify(low, context, {1, on_low});
    EXPECT_TRUE(equal->stands);
    const auto certain = verifier.Verify(low, context, {0, on_one});
    EXPECT_EQ(certain->token, certain->stands ? 0 : 1);
  }
}

TEST(Rejection, GreedyRequestsAreMatched) {
  Verifier verifier(VerifyMethod::kRejection, 4);
  const SamplingParams params = Params(0);
  const TokenContext context{.params = params, .prompt = {}, .output = {}, .eos_tokens = {}};
  EXPECT_FALSE(verifier.NeedsProbabilities(params));
  const std::vector<float> row = {1, 3, 2, 0};
  EXPECT_TRUE(verifier.Verify(row, context, {1})->stands);
  EXPECT_EQ(verifier.Verify(row, context, {2})->token, 1);
}

TEST(Verifier, BadLogitsAreAnError) {
  for (const VerifyMethod method : {VerifyMethod::kExactMatch, VerifyMethod::kRejection}) {
    Verifier verifier(method, 4);
    const SamplingParams params = Params(1);
    const TokenContext context{.params = params, .prompt = {}, .output = {}, .eos_tokens = {}};
    const std::vector<float> row = {1, NAN, 2, 0};
    const std::vector<float> q = {0.5F, 0.5F, 0, 0};
    EXPECT_FALSE(verifier.Verify(row, context, {1, q}).ok());
    std::vector<float> out(4);
    EXPECT_FALSE(verifier.Propose(row, context, out).ok());
  }
}

TEST(NoiseStreams, AreIndependent) {
  constexpr int kDraws = 20000;
  double product = 0.0;
  for (int i = 0; i < kDraws; ++i) {
    const auto at = [i](NoiseStream stream) { return PositionNoise(7, i, stream).Uniform() - 0.5; };
    product += at(NoiseStream::kDraft) * at(NoiseStream::kAccept);
    product += at(NoiseStream::kAccept) * at(NoiseStream::kResidual);
    product += at(NoiseStream::kSample) * at(NoiseStream::kDraft);
  }
  EXPECT_NEAR(product / kDraws, 0.0, 0.005);
}

TEST(SyntheticAcceptance, HasTheMeanAndVariesLittle) {
  const std::array<double, 4> rates = {1.0, 1.0, 0.4, 0.0};
  double sum = 0.0;
  for (int i = 0; i < 10000; ++i) {
    const int32_t accepted = SyntheticAcceptance(rates, 3, i);
    EXPECT_TRUE(accepted == 2 || accepted == 3);
    sum += accepted;
  }
  EXPECT_NEAR(sum / 10000, 2.4, 0.03);
}

}  // namespace
}  // namespace fulgur::sample

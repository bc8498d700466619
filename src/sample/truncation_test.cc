#include "sample/truncation.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

namespace fulgur::sample {
namespace {

// The tokens that stay, by sorting everything.
std::vector<int32_t> Kept(const std::vector<float>& scores, const SamplingParams& params) {
  std::vector<int32_t> order(scores.size());
  std::iota(order.begin(), order.end(), 0);
  const auto score = [&](int32_t v) { return scores[static_cast<size_t>(v)]; };
  std::stable_sort(order.begin(), order.end(),
                   [&](int32_t a, int32_t b) { return score(a) > score(b); });
  const auto masked = [&](int32_t v) { return std::isinf(score(v)); };
  std::erase_if(order, masked);
  if (params.min_p > 0) {
    std::erase_if(order, [&](int32_t v) { return score(v) < std::log(params.min_p); });
  }
  if (params.top_k > 0 && order.size() > static_cast<size_t>(params.top_k)) {
    order.resize(static_cast<size_t>(params.top_k));
  }
  if (params.top_p < 1.0F) {
    double total = 0.0;
    for (const int32_t v : order) total += std::exp(score(v));
    double mass = 0.0;
    size_t kept = 0;
    while (kept < order.size() && mass < params.top_p * total) {
      mass += std::exp(score(order[kept++]));
    }
    order.resize(kept);
  }
  std::sort(order.begin(), order.end());
  return order;
}

TEST(Truncation, KeepsWhatSortingKeeps) {
  std::mt19937 rng(31);
  TruncationScratch scratch;
  for (int round = 0; round < 400; ++round) {
    std::vector<float> scores(1 + rng() % 300);
    const float spread = std::array{0.0F, 0.1F, 3.0F, 30.0F}[rng() % 4];
    for (float& score : scores) {
      // Multiples of 1/8: sums are exact enough, and ties are common.
      score = -std::round(std::abs(std::normal_distribution<float>(0, spread)(rng)) * 8) / 8;
      if (rng() % 10 == 0) score = -std::numeric_limits<float>::infinity();
    }
    scores[rng() % scores.size()] = 0.0F;
    SamplingParams params;
    if (rng() % 2 == 0) params.top_k = static_cast<int32_t>(1 + rng() % 50);
    if (rng() % 2 == 0) params.top_p = std::array{0.05F, 0.55F, 0.913F, 0.999F}[rng() % 4];
    if (rng() % 3 == 0) params.min_p = std::array{1e-6F, 0.03F, 0.7F, 1.0F}[rng() % 4];
    const Cut cut = Truncate(scores, params, scratch);
    std::vector<int32_t> kept;
    for (size_t v = 0; v < scores.size(); ++v) {
      if (cut.Keeps(scores[v], static_cast<int32_t>(v))) kept.push_back(static_cast<int32_t>(v));
    }
    EXPECT_EQ(kept, Kept(scores, params))
        << "k " << params.top_k << " p " << params.top_p << " min " << params.min_p;
  }
}

}  // namespace
}  // namespace fulgur::sample

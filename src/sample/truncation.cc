#include "sample/truncation.h"

#include <algorithm>
#include <cmath>

#include "sample/order.h"

namespace fulgur::sample {
namespace {

// Tokens are sorted into narrow bands of scores; only the band of the cut is ordered exactly.
constexpr float kBandsPerUnit = 64.0F;
constexpr int kNumBands = 32 * 64;  // the last one takes all below e^-32

size_t BandOf(float score) {
  return static_cast<size_t>(std::min(-score * kBandsPerUnit, kNumBands - 1.0F));
}

double Weight(float score) { return std::exp(score); }

Cut CutTopK(std::span<const float> scores, int32_t top_k, const Cut& cut,
            std::vector<int32_t>& tokens) {
  TopIndices(scores, top_k, tokens);
  const int32_t last = tokens.back();
  const float score = scores[static_cast<size_t>(last)];
  return cut.Keeps(score, last) ? Cut{score, last} : cut;
}

// A token stays while those before it have less than top_p of the mass of all kept so far.
Cut CutTopP(std::span<const float> scores, float top_p, const Cut& cut,
            TruncationScratch& scratch) {
  std::vector<double>& masses = scratch.masses;
  masses.assign(kNumBands, 0.0);
  for (size_t v = 0; v < scores.size(); ++v) {
    if (!cut.Keeps(scores[v], static_cast<int32_t>(v))) continue;
    masses[BandOf(scores[v])] += Weight(scores[v]);
  }
  double total = 0.0;
  for (const double mass : masses) total += mass;
  const double wanted = top_p * total;
  double before = 0.0;
  size_t band = 0;
  while (band + 1 < masses.size() && before + masses[band] < wanted) before += masses[band++];

  std::vector<int32_t>& tokens = scratch.tokens;
  tokens.clear();
  for (size_t v = 0; v < scores.size(); ++v) {
    const auto token = static_cast<int32_t>(v);
    if (cut.Keeps(scores[v], token) && BandOf(scores[v]) == band) tokens.push_back(token);
  }
  std::sort(tokens.begin(), tokens.end(),
            [&](int32_t a, int32_t b) { return Before(scores, a, b); });
  Cut result = cut;
  for (const int32_t token : tokens) {
    if (before >= wanted) break;
    const float score = scores[static_cast<size_t>(token)];
    result = {score, token};
    before += Weight(score);
  }
  return result;
}

}  // namespace

Cut Truncate(std::span<const float> scores, const SamplingParams& params,
             TruncationScratch& scratch) {
  Cut cut;
  if (params.min_p > 0.0F) cut.score = std::log(params.min_p);
  if (params.top_k > 0 && static_cast<size_t>(params.top_k) < scores.size()) {
    cut = CutTopK(scores, params.top_k, cut, scratch.tokens);
  }
  if (params.top_p < 1.0F) cut = CutTopP(scores, params.top_p, cut, scratch);
  return cut;
}

}  // namespace fulgur::sample

#include "sample/verifier.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/check.h"
#include "base/status_macros.h"

namespace fulgur::sample {
namespace {

// Where p and q are the same but for rounding there is nothing between them to draw from.
constexpr double kLeastResidual = 1e-8;

}  // namespace

int32_t DrawInProportion(std::span<const float> weights, const PositionNoise& noise) {
  int32_t winner = -1;
  double best = -std::numeric_limits<double>::infinity();
  for (size_t v = 0; v < weights.size(); ++v) {
    if (!(weights[v] > 0.0F)) continue;
    const double value =
        std::log(static_cast<double>(weights[v])) + noise.Gumbel(static_cast<int32_t>(v));
    if (value <= best) continue;
    best = value;
    winner = static_cast<int32_t>(v);
  }
  CHECK_GE(winner, 0);
  return winner;
}

int32_t SyntheticAcceptance(std::span<const double> rates, uint64_t seed, int64_t position) {
  const double u = PositionNoise(seed, position, NoiseStream::kAccept).Uniform();
  const auto stands = std::count_if(rates.begin(), rates.end(), [u](double r) { return u < r; });
  return static_cast<int32_t>(stands);
}

Verifier::Verifier(VerifyMethod method, int64_t vocab_size)
    : method_(method), sampler_(vocab_size) {
  if (method == VerifyMethod::kExactMatch) return;
  target_.resize(static_cast<size_t>(vocab_size));
  residual_.resize(static_cast<size_t>(vocab_size));
}

absl::StatusOr<int32_t> Verifier::Propose(std::span<const float> logits,
                                          const TokenContext& context,
                                          std::span<float> probabilities) {
  if (!NeedsProbabilities(context.params)) return sampler_.Sample(logits, context);
  RETURN_IF_ERROR(sampler_.Distribution(logits, context, probabilities));
  return DrawInProportion(probabilities,
                          PositionNoise(context.seed, context.position(), NoiseStream::kDraft));
}

absl::StatusOr<Verdict> Verifier::Verify(std::span<const float> logits, const TokenContext& context,
                                         const Draft& draft) {
  if (!NeedsProbabilities(context.params)) {
    ASSIGN_OR_RETURN(const int32_t token, sampler_.Sample(logits, context));
    return Verdict{token, token == draft.token};
  }
  RETURN_IF_ERROR(sampler_.Distribution(logits, context, target_));
  const auto drawn = static_cast<size_t>(draft.token);
  const float p = target_[drawn];
  const float q = draft.probabilities[drawn];
  const double u = PositionNoise(context.seed, context.position(), NoiseStream::kAccept).Uniform();
  if (p > 0.0F && u * q <= p) return Verdict{draft.token, true};

  double mass = 0.0;
  for (size_t v = 0; v < target_.size(); ++v) {
    residual_[v] = std::max(0.0F, target_[v] - draft.probabilities[v]);
    mass += residual_[v];
  }
  const PositionNoise noise(context.seed, context.position(), NoiseStream::kResidual);
  return Verdict{DrawInProportion(mass < kLeastResidual ? target_ : residual_, noise), false};
}

}  // namespace fulgur::sample

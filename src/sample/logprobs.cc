#include "sample/logprobs.h"

#include <cmath>

#include "sample/order.h"

namespace fulgur::sample {

double LogSumExp(std::span<const float> logits) {
  const float max = logits[static_cast<size_t>(ArgMax(logits))];
  double sum = 0.0;
  for (const float logit : logits) sum += std::exp(logit - max);
  return static_cast<double>(max) + std::log(sum);
}

TokenLogprob LogprobOf(std::span<const float> logits, double log_sum_exp, int32_t token) {
  const double logit = logits[static_cast<size_t>(token)];
  return {token, static_cast<float>(logit - log_sum_exp), RankOf(logits, token)};
}

void AppendTopLogprobs(std::span<const float> logits, double log_sum_exp, int64_t count,
                       std::vector<TokenLogprob>& out) {
  std::vector<int32_t> best;
  TopIndices(logits, count < 0 ? static_cast<int64_t>(logits.size()) : count, best);
  int32_t rank = 0;
  for (const int32_t token : best) {
    const double logit = logits[static_cast<size_t>(token)];
    out.push_back({token, static_cast<float>(logit - log_sum_exp), ++rank});
  }
}

}  // namespace fulgur::sample

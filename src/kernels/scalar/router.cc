#include <algorithm>
#include <cmath>

#include "kernels/scalar/scalar_ops.h"

namespace fulgur::kernels::scalar {
namespace {

// sqrt(ln(1 + e^x)), stable for large |x|.
float SqrtSoftplus(float logit) {
  const auto x = static_cast<double>(logit);
  return static_cast<float>(std::sqrt(std::log1p(std::exp(-std::fabs(x))) + std::max(x, 0.0)));
}

// The k experts with the largest score + bias, best first; ties: lower index first.
void SelectExperts(const RouteArgs& args, const float* logits, int32_t* experts) {
  const auto key = [&](int32_t e) { return SqrtSoftplus(logits[e]) + args.bias[e]; };
  int64_t count = 0;
  for (int32_t e = 0; e < args.num_experts; ++e) {
    int64_t place = count;
    while (place > 0 && key(e) > key(experts[place - 1])) --place;
    if (place == args.top_k) continue;
    count = std::min(count + 1, args.top_k);
    std::copy_backward(experts + place, experts + count - 1, experts + count);
    experts[place] = e;
  }
}

void WeighExperts(const RouteArgs& args, const float* logits, const int32_t* experts,
                  float* weights) {
  double sum = 0.0;
  for (int64_t j = 0; j < args.top_k; ++j) {
    weights[j] = SqrtSoftplus(logits[experts[j]]);
    sum += static_cast<double>(weights[j]);
  }
  if (!args.normalize) sum = 1.0;
  for (int64_t j = 0; j < args.top_k; ++j) {
    weights[j] =
        static_cast<float>(static_cast<double>(weights[j]) / sum * static_cast<double>(args.scale));
  }
}

}  // namespace

void Route(const RouteArgs& args, const base::WorkerRank& worker) {
  const auto [begin, end] = worker.Share(args.rows);
  for (int64_t row = begin; row < end; ++row) {
    const float* logits = args.logits + row * args.num_experts;
    int32_t* experts = args.experts + row * args.top_k;
    if (args.token_experts != nullptr) {
      std::copy_n(args.token_experts + args.tokens[row] * args.top_k, args.top_k, experts);
    } else {
      SelectExperts(args, logits, experts);
    }
    WeighExperts(args, logits, experts, args.weights + row * args.top_k);
  }
}

}  // namespace fulgur::kernels::scalar

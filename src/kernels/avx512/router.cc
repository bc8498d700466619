// Router: sqrt(softplus) scores of all experts, then a short insertion sort.
#include "kernels/avx512/avx512_ops.h"
#include "kernels/avx512/rows.h"
#include "kernels/packed_layout.h"
#include "kernels/scratch.h"

namespace fulgur::kernels::avx512 {
namespace {

// ln(1 + u) for 0 <= u <= 1: 2 atanh(u / (2 + u)) as an odd series, |u / (2 + u)| <= 1/3.
FULGUR_INLINE __m512 Log1p(__m512 u) {
  const __m512 z = _mm512_div_ps(u, _mm512_add_ps(u, _mm512_set1_ps(2.0F)));
  const __m512 s = _mm512_mul_ps(z, z);
  __m512 p = _mm512_set1_ps(1.0F / 15.0F);
  p = _mm512_fmadd_ps(p, s, _mm512_set1_ps(1.0F / 13.0F));
  p = _mm512_fmadd_ps(p, s, _mm512_set1_ps(1.0F / 11.0F));
  p = _mm512_fmadd_ps(p, s, _mm512_set1_ps(1.0F / 9.0F));
  p = _mm512_fmadd_ps(p, s, _mm512_set1_ps(1.0F / 7.0F));
  p = _mm512_fmadd_ps(p, s, _mm512_set1_ps(1.0F / 5.0F));
  p = _mm512_fmadd_ps(p, s, _mm512_set1_ps(1.0F / 3.0F));
  p = _mm512_fmadd_ps(p, s, _mm512_set1_ps(1.0F));
  return _mm512_mul_ps(_mm512_add_ps(z, z), p);
}

// sqrt(ln(1 + e^x)), stable for large |x|.
FULGUR_INLINE __m512 SqrtSoftplus(__m512 x) {
  const __m512 zero = _mm512_setzero_ps();
  const __m512 tail = Log1p(Exp(_mm512_sub_ps(zero, _mm512_abs_ps(x))));
  return _mm512_sqrt_ps(_mm512_add_ps(tail, _mm512_max_ps(x, zero)));
}

// Scores of a row, and the keys that selection compares.
void ScoreRow(const RouteArgs& args, const float* logits, float* scores, float* keys) {
  for (int64_t e = 0; e < args.num_experts; e += 16) {
    const __m512 score = SqrtSoftplus(LoadLanes(logits, e, args.num_experts));
    StoreLanes(scores, e, args.num_experts, score);
    if (args.bias == nullptr) continue;
    StoreLanes(keys, e, args.num_experts,
               _mm512_add_ps(score, LoadLanes(args.bias, e, args.num_experts)));
  }
}

// The experts with the largest keys, best first; ties: lower index first.
void SelectExperts(const RouteArgs& args, const float* keys, int32_t* experts) {
  int64_t count = 0;
  for (int32_t e = 0; e < args.num_experts; ++e) {
    int64_t place = count;
    while (place > 0 && keys[e] > keys[experts[place - 1]]) --place;
    if (place == args.top_k) continue;
    if (count < args.top_k) ++count;
    for (int64_t i = count - 1; i > place; --i) experts[i] = experts[i - 1];
    experts[place] = e;
  }
}

void WeighExperts(const RouteArgs& args, const float* scores, const int32_t* experts,
                  float* weights) {
  float sum = 0.0F;
  for (int64_t j = 0; j < args.top_k; ++j) sum += scores[experts[j]];
  const float factor = args.scale / (args.normalize ? sum : 1.0F);
  for (int64_t j = 0; j < args.top_k; ++j) weights[j] = scores[experts[j]] * factor;
}

}  // namespace

void Route(const RouteArgs& args, const base::WorkerRank& worker) {
  auto* scores = reinterpret_cast<float*>(Scratch(ScratchUse::kRow, 2 * args.num_experts * 4));
  float* keys = scores + args.num_experts;
  const auto [begin, end] = worker.Share(args.rows);
  for (int64_t row = begin; row < end; ++row) {
    ScoreRow(args, args.logits + row * args.num_experts, scores, keys);
    int32_t* experts = args.experts + row * args.top_k;
    if (args.token_experts == nullptr) {
      SelectExperts(args, keys, experts);
    } else {
      for (int64_t j = 0; j < args.top_k; ++j) {
        experts[j] = args.token_experts[args.tokens[row] * args.top_k + j];
      }
    }
    WeighExperts(args, scores, experts, args.weights + row * args.top_k);
  }
}

}  // namespace fulgur::kernels::avx512

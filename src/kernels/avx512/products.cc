// Linear layers and experts of the two tables.
#include "kernels/products.h"

#include "kernels/avx512/avx512_ops.h"
#include "kernels/avx512/gemm.h"
#include "kernels/avx512/math.h"
#include "kernels/avx512/simd.h"

namespace fulgur::kernels::avx512 {
namespace {

void SwiGlu(const float* gate, const float* up, float limit, float weight, int64_t channels,
            float* h) {
  const __m512 high = _mm512_set1_ps(limit > 0.0F ? limit : __builtin_inff());
  const __m512 low = _mm512_sub_ps(_mm512_setzero_ps(), high);
  for (int64_t c = 0; c < channels; c += 16) {
    const __mmask16 lanes = Lanes(channels - c);
    const __m512 g = _mm512_min_ps(_mm512_maskz_loadu_ps(lanes, gate + c), high);
    const __m512 u = _mm512_max_ps(low, _mm512_min_ps(_mm512_maskz_loadu_ps(lanes, up + c), high));
    const __m512 silu = _mm512_mul_ps(g, Sigmoid(g));
    _mm512_mask_storeu_ps(h + c, lanes,
                          _mm512_mul_ps(_mm512_mul_ps(silu, u), _mm512_set1_ps(weight)));
  }
}

constexpr ProductKernels kDot = {GemmF32, GemmBf16Dot, GemmInteger, SwiGlu};
constexpr ProductKernels kFma = {GemmF32, GemmBf16Fma, GemmInteger, SwiGlu};

}  // namespace

void LinearDot(std::span<const LinearJob> jobs, const base::WorkerRank& worker) {
  RunLinear(kDot, jobs, worker);
}
void LinearFma(std::span<const LinearJob> jobs, const base::WorkerRank& worker) {
  RunLinear(kFma, jobs, worker);
}
void ExpertGateUpDot(const ExpertArgs& args, const base::WorkerRank& worker) {
  RunExpertGateUp(kDot, args, worker);
}
void ExpertGateUpFma(const ExpertArgs& args, const base::WorkerRank& worker) {
  RunExpertGateUp(kFma, args, worker);
}
void ExpertDownDot(const ExpertArgs& args, const base::WorkerRank& worker) {
  RunExpertDown(kDot, args, worker);
}
void ExpertDownFma(const ExpertArgs& args, const base::WorkerRank& worker) {
  RunExpertDown(kFma, args, worker);
}

}  // namespace fulgur::kernels::avx512

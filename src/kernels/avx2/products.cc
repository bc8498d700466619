// Linear layers and experts.
#include "kernels/products.h"

#include "kernels/avx2/avx2_ops.h"
#include "kernels/avx2/gemm.h"
#include "kernels/avx2/simd.h"

namespace fulgur::kernels::avx2 {
namespace {

__m256 SwiGluLanes(__m256 gate, __m256 up, __m256 limit, float weight) {
  const __m256 one = _mm256_set1_ps(1.0F);
  const __m256 g = _mm256_min_ps(gate, limit);
  const __m256 lowest = _mm256_sub_ps(_mm256_setzero_ps(), limit);
  const __m256 u = _mm256_max_ps(lowest, _mm256_min_ps(up, limit));
  const __m256 sigmoid =
      _mm256_div_ps(one, _mm256_add_ps(one, Exp(_mm256_sub_ps(_mm256_setzero_ps(), g))));
  return _mm256_mul_ps(_mm256_mul_ps(_mm256_mul_ps(g, sigmoid), u), _mm256_set1_ps(weight));
}

// Rows of the driver are 64 wide, so lanes beyond `channels` may be read.
void SwiGlu(const float* gate, const float* up, float limit, float weight, int64_t channels,
            float* h) {
  const __m256 highest = _mm256_set1_ps(limit > 0.0F ? limit : __builtin_inff());
  for (int64_t c = 0; c < channels; c += 8) {
    const __m256 value =
        SwiGluLanes(_mm256_loadu_ps(gate + c), _mm256_loadu_ps(up + c), highest, weight);
    StoreLanes(h + c, channels - c, value);
  }
}

constexpr ProductKernels kKernels = {GemmF32, GemmBf16, GemmInteger, SwiGlu};

}  // namespace

void Linear(std::span<const LinearJob> jobs, const base::WorkerRank& worker) {
  RunLinear(kKernels, jobs, worker);
}
void ExpertGateUp(const ExpertArgs& args, const base::WorkerRank& worker) {
  RunExpertGateUp(kKernels, args, worker);
}
void ExpertDown(const ExpertArgs& args, const base::WorkerRank& worker) {
  RunExpertDown(kKernels, args, worker);
}

}  // namespace fulgur::kernels::avx2

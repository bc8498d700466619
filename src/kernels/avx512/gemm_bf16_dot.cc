// The family of VDPBF16PS: two products per lane and step, fp32 sums, no denormals.
#include "kernels/avx512/gemm_bf16_impl.h"

namespace fulgur::kernels::avx512 {
namespace {

struct DotFamily {
  static constexpr int kRows = 6;  // 6 rows x 2 groups x 2 sums: 24 accumulators

  static FULGUR_INLINE __m512bh Pair(const std::byte* x) {
    return reinterpret_cast<__m512bh>(Broadcast4(x));
  }
  static FULGUR_INLINE __m512 MultiplyAdd(__m512 sum, __m512i word, __m512bh pair) {
    return _mm512_dpbf16_ps(sum, reinterpret_cast<__m512bh>(word), pair);
  }
};

}  // namespace

void GemmBf16Dot(const PackedLinear& weight, int64_t block, const RowSet& x, float* y,
                 int64_t ldy) {
  GemmBf16<DotFamily>(weight, block, x, y, ldy);
}

}  // namespace fulgur::kernels::avx512

#include "kernels/avx512/bf16_fma.h"
#include "kernels/avx512/gemm_bf16_impl.h"

namespace fulgur::kernels::avx512 {

void GemmBf16Fma(const PackedLinear& weight, int64_t block, const RowSet& x, float* y,
                 int64_t ldy) {
  GemmBf16<FmaFamily>(weight, block, x, y, ldy);
}

}  // namespace fulgur::kernels::avx512

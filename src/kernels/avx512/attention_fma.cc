#include "kernels/avx512/attention_impl.h"
#include "kernels/avx512/avx512_ops.h"
#include "kernels/avx512/bf16_fma.h"
#include "kernels/scalar/scalar_ops.h"

namespace fulgur::kernels::avx512 {

void SparseAttentionFma(const AttentionArgs& args, const base::WorkerRank& worker) {
  if (!CanAttend(args)) return scalar::SparseAttention(args, worker);
  Attend<FmaFamily>(args, worker);
}

}  // namespace fulgur::kernels::avx512

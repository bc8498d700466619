#include "kernels/avx512/attention_impl.h"
#include "kernels/avx512/avx512_ops.h"
#include "kernels/avx512/bf16_dot.h"
#include "kernels/scalar/scalar_ops.h"

namespace fulgur::kernels::avx512 {

void SparseAttentionDot(const AttentionArgs& args, const base::WorkerRank& worker) {
  if (!CanAttend(args)) return scalar::SparseAttention(args, worker);
  Attend<DotFamily>(args, worker);
}

}  // namespace fulgur::kernels::avx512

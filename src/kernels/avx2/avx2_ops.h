// The AVX2 table: what streams weights, cached keys and index keys. The other ops are scalar.
#pragma once

#include <span>

#include "kernels/op_table.h"

namespace fulgur::kernels::avx2 {

void Linear(std::span<const LinearJob> jobs, const base::WorkerRank& worker);
void ExpertGateUp(const ExpertArgs& args, const base::WorkerRank& worker);
void ExpertDown(const ExpertArgs& args, const base::WorkerRank& worker);
void SparseAttention(const AttentionArgs& args, const base::WorkerRank& worker);
void IndexScores(const IndexArgs& args, const base::WorkerRank& worker);

}  // namespace fulgur::kernels::avx2

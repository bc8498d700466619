// The AVX-512 tables: VNNI for integers; for bf16 either VDPBF16PS (Dot) or fp32 FMA (Fma).
#pragma once

#include <span>

#include "kernels/op_table.h"

namespace fulgur::kernels::avx512 {

void Embed(const EmbedArgs& args, const base::WorkerRank& worker);
void NormRows(std::span<const NormRowsJob> jobs, const base::WorkerRank& worker);
void HcPost(const HcPostArgs& args, const base::WorkerRank& worker);
void HcPre(const HcPreArgs& args, const base::WorkerRank& worker);
void HeadRows(std::span<const HeadRowsJob> jobs, const base::WorkerRank& worker);
void Compress(const CompressArgs& args, const base::WorkerRank& worker);
void IndexScores(const IndexArgs& args, const base::WorkerRank& worker);
void Route(const RouteArgs& args, const base::WorkerRank& worker);

void SparseAttentionDot(const AttentionArgs& args, const base::WorkerRank& worker);
void SparseAttentionFma(const AttentionArgs& args, const base::WorkerRank& worker);
void LinearDot(std::span<const LinearJob> jobs, const base::WorkerRank& worker);
void LinearFma(std::span<const LinearJob> jobs, const base::WorkerRank& worker);
void ExpertGateUpDot(const ExpertArgs& args, const base::WorkerRank& worker);
void ExpertGateUpFma(const ExpertArgs& args, const base::WorkerRank& worker);
void ExpertDownDot(const ExpertArgs& args, const base::WorkerRank& worker);
void ExpertDownFma(const ExpertArgs& args, const base::WorkerRank& worker);

}  // namespace fulgur::kernels::avx512

// The AVX-512 tables: VNNI for integers; for bf16 either VDPBF16PS (Dot) or fp32 FMA (Fma).
#pragma once

#include <span>

#include "kernels/op_table.h"

namespace fulgur::kernels::avx512 {

void LinearDot(std::span<const LinearJob> jobs, const base::WorkerRank& worker);
void LinearFma(std::span<const LinearJob> jobs, const base::WorkerRank& worker);
void ExpertGateUpDot(const ExpertArgs& args, const base::WorkerRank& worker);
void ExpertGateUpFma(const ExpertArgs& args, const base::WorkerRank& worker);
void ExpertDownDot(const ExpertArgs& args, const base::WorkerRank& worker);
void ExpertDownFma(const ExpertArgs& args, const base::WorkerRank& worker);

}  // namespace fulgur::kernels::avx512

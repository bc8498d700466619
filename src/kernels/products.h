// Linear layers and experts as block products: which worker multiplies what, and what becomes of
// the products. The same for every instruction set that brings the kernels below.
#pragma once

#include <span>

#include "base/team.h"
#include "kernels/expert_args.h"
#include "kernels/linear.h"
#include "kernels/row_set.h"

namespace fulgur::kernels {

// y[r * ldy + c] = sum_i weight[64 block + c, i] x[r, i] for the channels of the block that exist.
// Each element by a sequence of operations that depends only on the weight's format and inputs,
// never on how many rows come along.
using BlockProduct = void (*)(const PackedLinear& weight, int64_t block, const RowSet& x, float* y,
                              int64_t ldy);

struct ProductKernels {
  BlockProduct f32;      // kF32
  BlockProduct bf16;     // kBf16, kFp8Block
  BlockProduct integer;  // kInt8, kInt4, kFp4
  // h[c] = weight silu(min(gate, limit)) clamp(up, -limit, limit) for `channels` values; no limit
  // if it is 0.
  void (*swiglu)(const float* gate, const float* up, float limit, float weight, int64_t channels,
                 float* h);
};

// The ops of the table.
void RunLinear(const ProductKernels& kernels, std::span<const LinearJob> jobs,
               const base::WorkerRank& worker);
void RunExpertGateUp(const ProductKernels& kernels, const ExpertArgs& args,
                     const base::WorkerRank& worker);
void RunExpertDown(const ProductKernels& kernels, const ExpertArgs& args,
                   const base::WorkerRank& worker);

}  // namespace fulgur::kernels

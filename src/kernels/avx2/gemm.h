// The block products of the AVX2 table.
#pragma once

#include "kernels/products.h"

namespace fulgur::kernels::avx2 {

void GemmF32(const PackedLinear& weight, int64_t block, const RowSet& x, float* y, int64_t ldy);
void GemmBf16(const PackedLinear& weight, int64_t block, const RowSet& x, float* y, int64_t ldy);
void GemmInteger(const PackedLinear& weight, int64_t block, const RowSet& x, float* y, int64_t ldy);

}  // namespace fulgur::kernels::avx2

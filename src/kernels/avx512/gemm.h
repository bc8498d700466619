// The block products of the AVX-512 tables.
#pragma once

#include "kernels/products.h"

namespace fulgur::kernels::avx512 {

void GemmF32(const PackedLinear& weight, int64_t block, const RowSet& x, float* y, int64_t ldy);
void GemmInteger(const PackedLinear& weight, int64_t block, const RowSet& x, float* y, int64_t ldy);

// Two families that round differently; a process uses one of them.
void GemmBf16Dot(const PackedLinear& weight, int64_t block, const RowSet& x, float* y, int64_t ldy);
void GemmBf16Fma(const PackedLinear& weight, int64_t block, const RowSet& x, float* y, int64_t ldy);

}  // namespace fulgur::kernels::avx512

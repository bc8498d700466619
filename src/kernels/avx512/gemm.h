// Products of packed weights with a set of rows: the part that linear and expert ops share.
//
// A block is 64 output channels. All functions compute each element by a sequence of operations
// that depends only on the weight's format and inputs, never on how many rows come along.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/linear.h"

namespace fulgur::kernels::avx512 {

inline constexpr int64_t kMaxRows = 96;

// Up to kMaxRows activation rows, in the representation that a weight format reads, readable for
// the format's padded inputs.
struct RowSet {
  int64_t rows = 0;
  const std::byte* x[kMaxRows];
  float scale[kMaxRows];  // int8 only
  int32_t sum[kMaxRows];  // int8 only: of the row's values
};

// Rows first .. first + count of x, or those that `index` lists from there on.
void PrepareRows(WeightFormat format, const ActivationRows& x, int64_t x_stride,
                 const int32_t* index, int64_t first, int64_t count, RowSet& set);

// How many rows of x to take at a time, so that they stay in the level-2 cache.
int64_t RowsAtATime(WeightFormat format, int64_t in);

// y[r * ldy + c] = sum_i weight[64 block + c, i] x[r, i] for the channels that exist.
using Gemm = void (*)(const PackedLinear& weight, int64_t block, const RowSet& x, float* y,
                      int64_t ldy);

void GemmF32(const PackedLinear& weight, int64_t block, const RowSet& x, float* y, int64_t ldy);
void GemmInteger(const PackedLinear& weight, int64_t block, const RowSet& x, float* y, int64_t ldy);

// kBf16 and kFp8Block. Two families that round differently; a process uses one of them.
void GemmBf16Dot(const PackedLinear& weight, int64_t block, const RowSet& x, float* y, int64_t ldy);
void GemmBf16Fma(const PackedLinear& weight, int64_t block, const RowSet& x, float* y, int64_t ldy);

}  // namespace fulgur::kernels::avx512

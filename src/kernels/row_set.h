// The rows of activations that a block product reads: gathered, padded, ready for its kernel.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/linear.h"

namespace fulgur::kernels {

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

}  // namespace fulgur::kernels

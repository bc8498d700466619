// Products of packed weights with a few rows: what the scalar linear and expert ops are made of.
#pragma once

#include <cstdint>
#include <span>

#include "kernels/linear.h"

namespace fulgur::kernels::scalar {

inline constexpr int64_t kMaxProductRows = 16;

// Channels [64 block, 64 block + 64) of the products with the listed rows of x: out[r][c] = sum_i
// weight[channel c, i] x[r, i], scales applied. At most kMaxProductRows rows; out [rows, 64], of
// which channels past the last are unspecified.
void BlockProduct(const PackedLinear& weight, int64_t block, const ActivationRows& x,
                  int64_t x_stride, std::span<const int32_t> rows, float* out);

}  // namespace fulgur::kernels::scalar

// Activation rows in their smaller representations.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "kernels/linear.h"

namespace fulgur::kernels {

// int8, symmetric, one scale per row: scale = absmax / 127, values rounded half to even. A row of
// zeros has scale 0 and values 0. Returns the scale. (W8A8_DYNAMIC of the modelslim format.)
inline float QuantizeInt8(const float* x, int64_t n, int8_t* out) {
  float absmax = 0.0F;
  for (int64_t i = 0; i < n; ++i) absmax = std::max(absmax, std::fabs(x[i]));
  const float scale = absmax / 127.0F;
  for (int64_t i = 0; i < n; ++i) {
    const float q = scale > 0.0F ? std::nearbyint(x[i] / scale) : 0.0F;
    out[i] = static_cast<int8_t>(std::clamp(q, -127.0F, 127.0F));
  }
  return scale;
}

// Writes fp32 values as row `t` of `out`, in every representation that is wanted.
inline void StoreRow(const float* values, int64_t cols, int64_t t, const RowsOut& out) {
  if (out.f32 != nullptr) std::copy_n(values, cols, out.f32 + t * cols);
  if (out.bf16 != nullptr) {
    std::transform(values, values + cols, out.bf16 + t * cols, tensor::ToBFloat16);
  }
  if (out.int8 != nullptr) {
    out.int8_scale[t] = QuantizeInt8(values, cols, out.int8 + t * cols);
  }
}

}  // namespace fulgur::kernels

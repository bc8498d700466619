// Arithmetic on single rows that several scalar ops share: products, norms, rotation, and cached
// rows in their formats.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "kernels/cache_rows.h"
#include "kernels/quantize.h"
#include "tensor/numbers.h"

namespace fulgur::kernels::scalar {

// Eight interleaved sums, added at the end: one fixed order that a compiler may still vectorise.
inline constexpr int64_t kLanes = 8;

inline double SumLanes(const double (&lanes)[kLanes]) {
  return ((lanes[0] + lanes[4]) + (lanes[2] + lanes[6])) +
         ((lanes[1] + lanes[5]) + (lanes[3] + lanes[7]));
}

inline double Dot(const float* a, const float* b, int64_t n) {
  double lanes[kLanes] = {};
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    for (int64_t l = 0; l < kLanes; ++l) {
      lanes[l] += static_cast<double>(a[i + l]) * static_cast<double>(b[i + l]);
    }
  }
  for (int64_t l = 0; i < n; ++i, ++l) {
    lanes[l] += static_cast<double>(a[i]) * static_cast<double>(b[i]);
  }
  return SumLanes(lanes);
}

// 1 / sqrt(mean of squares + eps).
inline double RmsScale(const float* x, int64_t n, float eps) {
  return 1.0 / std::sqrt(Dot(x, x, n) / static_cast<double>(n) + static_cast<double>(eps));
}

// x = x * scale * weight; no weight: ones.
inline void ScaleRow(float* x, int64_t n, double scale, const float* weight) {
  for (int64_t i = 0; i < n; ++i) {
    const double w = weight == nullptr ? 1.0 : static_cast<double>(weight[i]);
    x[i] = static_cast<float>(static_cast<double>(x[i]) * scale * w);
  }
}

// Rotates the last `rope_dim` of `n` values by interleaved pairs; `direction` -1 undoes +1.
inline void Rotate(float* x, int64_t n, const float* rotation, int64_t rope_dim,
                   float direction = 1.0F) {
  float* pairs = x + n - rope_dim;
  for (int64_t i = 0; i < rope_dim; i += 2) {
    const double c = static_cast<double>(rotation[i]);
    const double s = static_cast<double>(direction * rotation[i + 1]);
    const auto u = static_cast<double>(pairs[i]);
    const auto v = static_cast<double>(pairs[i + 1]);
    pairs[i] = static_cast<float>(u * c - v * s);
    pairs[i + 1] = static_cast<float>(u * s + v * c);
  }
}

// x = Had x / sqrt(n) in natural (Sylvester) order; n is a power of two.
inline void Hadamard(float* x, int64_t n) {
  for (int64_t step = 1; step < n; step *= 2) {
    for (int64_t i = 0; i < n; ++i) {
      if ((i & step) != 0) continue;
      const float a = x[i];
      const float b = x[i + step];
      x[i] = a + b;
      x[i + step] = a - b;
    }
  }
  ScaleRow(x, n, 1.0 / std::sqrt(static_cast<double>(n)), nullptr);
}

inline void StoreCacheRow(RowFormat format, const float* x, int64_t n, std::byte* row) {
  switch (format) {
    case RowFormat::kF32:
      std::memcpy(row, x, static_cast<size_t>(n) * sizeof(float));
      return;
    case RowFormat::kBf16: {
      auto* values = reinterpret_cast<tensor::BFloat16*>(row);
      for (int64_t i = 0; i < n; ++i) values[i] = tensor::ToBFloat16(x[i]);
      return;
    }
    case RowFormat::kInt8Scaled: {
      const float scale = QuantizeInt8(x, n, reinterpret_cast<int8_t*>(row));
      std::memcpy(row + n, &scale, sizeof(scale));
      return;
    }
  }
}

// A cached fp32 or bf16 row as fp32 values; `buffer` [n] is used only if they must be converted.
inline const float* LoadCacheRow(RowFormat format, const std::byte* row, int64_t n, float* buffer) {
  if (format == RowFormat::kF32) return reinterpret_cast<const float*>(row);
  const auto* values = reinterpret_cast<const tensor::BFloat16*>(row);
  for (int64_t i = 0; i < n; ++i) buffer[i] = tensor::ToFloat(values[i]);
  return buffer;
}

}  // namespace fulgur::kernels::scalar

// Arithmetic on single rows that several ops share: norms, rotation, Hadamard, conversions.
//
// Rows have any length; the lanes of the last step are masked. Sums run over four accumulators by
// position and are added in one fixed order.
#pragma once

#include "kernels/avx512/math.h"
#include "kernels/avx512/simd.h"
#include "kernels/cache_rows.h"
#include "kernels/layer_args.h"
#include "kernels/linear.h"

namespace fulgur::kernels::avx512 {

FULGUR_INLINE __m512 LoadLanes(const float* x, int64_t i, int64_t n) {
  return _mm512_maskz_loadu_ps(Lanes(n - i), x + i);
}

FULGUR_INLINE void StoreLanes(float* x, int64_t i, int64_t n, __m512 value) {
  _mm512_mask_storeu_ps(x + i, Lanes(n - i), value);
}

FULGUR_INLINE float SumOfSquares(const float* x, int64_t n) {
  __m512 sum[4] = {_mm512_setzero_ps(), _mm512_setzero_ps(), _mm512_setzero_ps(),
                   _mm512_setzero_ps()};
  for (int64_t i = 0; i < n; i += 64) {
#pragma GCC unroll 4
    for (int j = 0; j < 4; ++j) {
      const __m512 v = LoadLanes(x, i + 16 * j, n);
      sum[j] = _mm512_fmadd_ps(v, v, sum[j]);
    }
  }
  return SumLanes(_mm512_add_ps(_mm512_add_ps(sum[0], sum[1]), _mm512_add_ps(sum[2], sum[3])));
}

// 1 / sqrt(mean of squares + eps).
FULGUR_INLINE float RmsScale(const float* x, int64_t n, float eps) {
  return 1.0F / __builtin_sqrtf(SumOfSquares(x, n) / static_cast<float>(n) + eps);
}

// out = x * scale * weight; no weight: ones.
FULGUR_INLINE void ScaleRow(const float* x, int64_t n, float scale, const float* weight,
                            float* out) {
  const __m512 s = _mm512_set1_ps(scale);
  for (int64_t i = 0; i < n; i += 16) {
    __m512 v = _mm512_mul_ps(LoadLanes(x, i, n), s);
    if (weight != nullptr) v = _mm512_mul_ps(v, LoadLanes(weight, i, n));
    StoreLanes(out, i, n, v);
  }
}

// Rotates the last `rope_dim` (even) of `n` values by interleaved pairs of (cos, sin).
template <bool kInverse>
FULGUR_INLINE void Rotate(float* x, int64_t n, const float* rotation, int64_t rope_dim) {
  float* pairs = x + n - rope_dim;
  for (int64_t i = 0; i < rope_dim; i += 16) {
    const __m512 v = LoadLanes(pairs, i, rope_dim);
    const __m512 r = LoadLanes(rotation, i, rope_dim);
    const __m512 cos = _mm512_moveldup_ps(r);
    const __m512 crossed = _mm512_mul_ps(_mm512_permute_ps(v, 0xb1), _mm512_movehdup_ps(r));
    const __m512 rotated =
        kInverse ? _mm512_fmsubadd_ps(v, cos, crossed) : _mm512_fmaddsub_ps(v, cos, crossed);
    StoreLanes(pairs, i, rope_dim, rotated);
  }
}

// x = Had x / sqrt(n) in natural order; n is a power of two, at least 16.
FULGUR_INLINE void Hadamard(float* x, int64_t n) {
  const __m512 scale = _mm512_set1_ps(1.0F / __builtin_sqrtf(static_cast<float>(n)));
  const auto butterfly = [](__m512 v, __m512 other, __mmask16 upper) {
    // lower lanes v + other, upper lanes other - v
    return _mm512_mask_sub_ps(_mm512_add_ps(v, other), upper, other, v);
  };
  for (int64_t i = 0; i < n; i += 16) {
    __m512 v = _mm512_loadu_ps(x + i);
    v = butterfly(v, _mm512_permute_ps(v, 0xb1), 0xaaaa);
    v = butterfly(v, _mm512_permute_ps(v, 0x4e), 0xcccc);
    v = butterfly(v, _mm512_shuffle_f32x4(v, v, 0xb1), 0xf0f0);
    v = butterfly(v, _mm512_shuffle_f32x4(v, v, 0x4e), 0xff00);
    _mm512_storeu_ps(x + i, v);
  }
  for (int64_t step = 16; step < n; step *= 2) {
    for (int64_t i = 0; i < n; i += 16) {
      if ((i & step) != 0) continue;
      const __m512 a = _mm512_loadu_ps(x + i);
      const __m512 b = _mm512_loadu_ps(x + i + step);
      _mm512_storeu_ps(x + i, _mm512_add_ps(a, b));
      _mm512_storeu_ps(x + i + step, _mm512_sub_ps(a, b));
    }
  }
  for (int64_t i = 0; i < n; i += 16) {
    _mm512_storeu_ps(x + i, _mm512_mul_ps(_mm512_loadu_ps(x + i), scale));
  }
}

// values = head x [dim] of row `row`, transformed.
FULGUR_INLINE void TransformHead(const HeadTransform& transform, const float* x, int64_t dim,
                                 int64_t row, float* values) {
  const float scale = transform.normalize ? RmsScale(x, dim, transform.eps) : 1.0F;
  ScaleRow(x, dim, scale, transform.normalize ? transform.weight : nullptr, values);
  Rotate<false>(values, dim, transform.rope + row * transform.rope_dim, transform.rope_dim);
  if (transform.hadamard) Hadamard(values, dim);
}

FULGUR_INLINE void ToBf16Row(const float* x, int64_t n, tensor::BFloat16* out) {
  for (int64_t i = 0; i < n; i += 16) {
    _mm256_mask_storeu_epi16(out + i, Lanes(n - i), ToBf16(LoadLanes(x, i, n)));
  }
}

// As kernels::QuantizeInt8, bit for bit; returns the scale.
FULGUR_INLINE float ToInt8Row(const float* x, int64_t n, int8_t* out) {
  __m512 largest = _mm512_setzero_ps();
  for (int64_t i = 0; i < n; i += 16) {
    largest = _mm512_max_ps(_mm512_abs_ps(LoadLanes(x, i, n)), largest);
  }
  const float scale = _mm512_reduce_max_ps(largest) / 127.0F;
  const __m512 divisor = _mm512_set1_ps(scale > 0.0F ? scale : __builtin_inff());
  for (int64_t i = 0; i < n; i += 16) {
    const __m512i q = _mm512_cvtps_epi32(_mm512_div_ps(LoadLanes(x, i, n), divisor));
    _mm_mask_storeu_epi8(out + i, Lanes(n - i), _mm512_cvtsepi32_epi8(q));
  }
  return scale;
}

// Writes fp32 values as row `t` of `out`, in every representation that is wanted.
FULGUR_INLINE void StoreRow(const float* values, int64_t cols, int64_t t, const RowsOut& out) {
  if (out.f32 != nullptr && out.f32 + t * cols != values) {
    __builtin_memcpy(out.f32 + t * cols, values, static_cast<size_t>(cols) * sizeof(float));
  }
  if (out.bf16 != nullptr) ToBf16Row(values, cols, out.bf16 + t * cols);
  if (out.int8 != nullptr) out.int8_scale[t] = ToInt8Row(values, cols, out.int8 + t * cols);
}

FULGUR_INLINE void StoreCacheRow(RowFormat format, const float* x, int64_t n, std::byte* row) {
  switch (format) {
    case RowFormat::kF32:
      __builtin_memcpy(row, x, static_cast<size_t>(n) * sizeof(float));
      return;
    case RowFormat::kBf16:
      return ToBf16Row(x, n, reinterpret_cast<tensor::BFloat16*>(row));
    case RowFormat::kInt8Scaled: {
      const float scale = ToInt8Row(x, n, reinterpret_cast<int8_t*>(row));
      __builtin_memcpy(row + n, &scale, sizeof(scale));
      return;
    }
  }
}

}  // namespace fulgur::kernels::avx512

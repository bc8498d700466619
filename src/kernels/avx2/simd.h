// Small helpers over AVX2 intrinsics. Only for files that are compiled with those flags.
#pragma once

#include <immintrin.h>

#include <cstddef>
#include <cstdint>

#include "kernels/always_inline.h"

namespace fulgur::kernels::avx2 {

FULGUR_INLINE int64_t MinInt(int64_t a, int64_t b) { return a < b ? a : b; }

FULGUR_INLINE __m256i LoadBytes(const void* p) {
  return _mm256_loadu_si256(static_cast<const __m256i*>(p));
}

// The 4 bytes at p in every lane.
FULGUR_INLINE __m256i Broadcast4(const std::byte* p) {
  int32_t word;
  __builtin_memcpy(&word, p, sizeof(word));
  return _mm256_set1_epi32(word);
}

// bf16 pairs as fp32: the lower ones, and the upper ones.
FULGUR_INLINE __m256 LowerBf16(__m256i pairs) {
  return _mm256_castsi256_ps(_mm256_slli_epi32(pairs, 16));
}
FULGUR_INLINE __m256 UpperBf16(__m256i pairs) {
  return _mm256_castsi256_ps(
      _mm256_and_si256(pairs, _mm256_set1_epi32(static_cast<int32_t>(0xffff0000U))));
}

// 8 consecutive bf16 values.
FULGUR_INLINE __m256 LoadBf16(const std::byte* p) {
  const __m128i values = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
  return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(values), 16));
}

// Writes the first `n` (at most 8) lanes.
FULGUR_INLINE void StoreLanes(float* p, int64_t n, __m256 v) {
  if (n >= 8) return _mm256_storeu_ps(p, v);
  const __m256i lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
  const __m256i wanted = _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int32_t>(n)), lane);
  _mm256_maskstore_ps(p, wanted, v);
}

// The sum of 8 lanes in a fixed order.
FULGUR_INLINE float SumLanes(__m256 v) {
  const __m128 halves = _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
  const __m128 pairs = _mm_add_ps(halves, _mm_movehl_ps(halves, halves));
  return _mm_cvtss_f32(_mm_add_ss(pairs, _mm_movehdup_ps(pairs)));
}

// Products of unsigned and signed bytes, summed in pairs to int16: |w| times x with the sign of w.
// Exact for |w| <= 128 and |x| <= 127.
FULGUR_INLINE __m256i PairProducts(__m256i w_magnitude, __m256i w, __m256i x) {
  return _mm256_maddubs_epi16(w_magnitude, _mm256_sign_epi8(x, w));
}

// e^x with a relative error below 2e-7; 0 below -104, infinity above 88.8 (Cody and Waite, then
// the Taylor polynomial of degree 7; the power of two in two factors, so that tiny results do not
// overflow the exponent).
FULGUR_INLINE __m256 Exp(__m256 x) {
  x = _mm256_max_ps(_mm256_set1_ps(-104.0F), _mm256_min_ps(_mm256_set1_ps(89.0F), x));
  const __m256 n = _mm256_round_ps(_mm256_mul_ps(x, _mm256_set1_ps(0x1.715476p+0F)),
                                   _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  __m256 r = _mm256_fnmadd_ps(n, _mm256_set1_ps(0x1.62e4p-1F), x);
  r = _mm256_fnmadd_ps(n, _mm256_set1_ps(0x1.7f7d1cp-20F), r);
  __m256 p = _mm256_set1_ps(1.0F / 5040.0F);
  p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(1.0F / 720.0F));
  p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(1.0F / 120.0F));
  p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(1.0F / 24.0F));
  p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(1.0F / 6.0F));
  p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(0.5F));
  p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(1.0F));
  p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(1.0F));
  const __m256i exponent = _mm256_cvtps_epi32(n);
  const __m256i half = _mm256_srai_epi32(exponent, 1);
  const auto power = [](__m256i e) {
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_add_epi32(e, _mm256_set1_epi32(127)), 23));
  };
  return _mm256_mul_ps(_mm256_mul_ps(p, power(half)), power(_mm256_sub_epi32(exponent, half)));
}

}  // namespace fulgur::kernels::avx2

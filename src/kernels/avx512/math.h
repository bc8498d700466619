// Real functions of 16 lanes. Each lane's result depends on its own input only, so tails and
// positions in a row make no difference.
#pragma once

#include "kernels/avx512/simd.h"

namespace fulgur::kernels::avx512 {

// e^x with a relative error below 2e-7; 0 below -104, infinity above 88.8. x = n ln 2 + r,
// |r| <= ln 2 / 2, the ln 2 in two parts (Cody and Waite), then the Taylor polynomial of degree 7.
FULGUR_INLINE __m512 Exp(__m512 x) {
  x = _mm512_max_ps(_mm512_set1_ps(-104.0F), x);  // in this order NaN stays NaN
  const __m512 n = _mm512_roundscale_ps(_mm512_mul_ps(x, _mm512_set1_ps(0x1.715476p+0F)),
                                        _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  __m512 r = _mm512_fnmadd_ps(n, _mm512_set1_ps(0x1.62e4p-1F), x);
  r = _mm512_fnmadd_ps(n, _mm512_set1_ps(0x1.7f7d1cp-20F), r);
  __m512 p = _mm512_set1_ps(1.0F / 5040.0F);
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(1.0F / 720.0F));
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(1.0F / 120.0F));
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(1.0F / 24.0F));
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(1.0F / 6.0F));
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(0.5F));
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(1.0F));
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(1.0F));
  return _mm512_scalef_ps(p, n);
}

FULGUR_INLINE __m512 Sigmoid(__m512 x) {
  const __m512 one = _mm512_set1_ps(1.0F);
  return _mm512_div_ps(one, _mm512_add_ps(one, Exp(_mm512_sub_ps(_mm512_setzero_ps(), x))));
}

// fp32 to bf16, to nearest, ties to even, as tensor::ToBFloat16 (NaN apart, which stays NaN).
FULGUR_INLINE __m256i ToBf16(__m512 x) {
  const __m512i bits = _mm512_castps_si512(x);
  const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
  const __m512i rounded = _mm512_add_epi32(bits, _mm512_add_epi32(odd, _mm512_set1_epi32(0x7fff)));
  const __mmask16 nan = _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q);
  const __m512i result = _mm512_mask_set1_epi32(rounded, nan, 0x7fc00000);
  return _mm512_cvtepi32_epi16(_mm512_srli_epi32(result, 16));
}

FULGUR_INLINE __m512 FromBf16(__m256i x) {
  return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(x), 16));
}

}  // namespace fulgur::kernels::avx512

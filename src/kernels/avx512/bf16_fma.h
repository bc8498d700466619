// The family of plain fp32 FMA, for machines without VDPBF16PS or where it is slower.
#pragma once

#include "kernels/avx512/simd.h"

namespace fulgur::kernels::avx512 {

struct FmaFamily {
  static constexpr int kRows = 4;  // widened weights need registers too
  static constexpr int kFp8Rows = 4;

  struct Floats {
    __m512 first;
    __m512 second;
  };

  static FULGUR_INLINE Floats Widen(__m512i pair) {
    return {_mm512_castsi512_ps(_mm512_slli_epi32(pair, 16)),
            _mm512_castsi512_ps(
                _mm512_and_si512(pair, _mm512_set1_epi32(static_cast<int32_t>(0xffff0000U))))};
  }
  static FULGUR_INLINE Floats Pair(const std::byte* x) { return Widen(Broadcast4(x)); }
  static FULGUR_INLINE __m512 MultiplyAdd(__m512 sum, __m512i word, const Floats& pair) {
    const Floats weights = Widen(word);
    sum = _mm512_fmadd_ps(weights.first, pair.first, sum);
    return _mm512_fmadd_ps(weights.second, pair.second, sum);
  }
};

}  // namespace fulgur::kernels::avx512

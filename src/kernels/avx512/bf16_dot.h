// The family of VDPBF16PS: two products per lane and step, fp32 sums, no denormals.
#pragma once

#include "kernels/avx512/simd.h"

namespace fulgur::kernels::avx512 {

struct DotFamily {
  static constexpr int kRows = 6;     // 6 rows x 2 groups x 2 sums: 24 accumulators
  static constexpr int kFp8Rows = 5;  // decoding needs registers too

  static FULGUR_INLINE __m512bh Pair(const std::byte* x) {
    return reinterpret_cast<__m512bh>(Broadcast4(x));
  }
  static FULGUR_INLINE __m512 MultiplyAdd(__m512 sum, __m512i word, __m512bh pair) {
    return _mm512_dpbf16_ps(sum, reinterpret_cast<__m512bh>(word), pair);
  }
};

}  // namespace fulgur::kernels::avx512

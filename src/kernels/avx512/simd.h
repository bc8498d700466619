// Small helpers over AVX-512 intrinsics. Only for files that are compiled with those flags; all
// always inlined, so that no copy of them can end up in code for other machines.
#pragma once

#include <immintrin.h>

#include <cstddef>
#include <cstdint>

#include "kernels/always_inline.h"

namespace fulgur::kernels::avx512 {

// The first `n` (clamped to 0..16) lanes.
FULGUR_INLINE __mmask16 Lanes(int64_t n) {
  return static_cast<__mmask16>(n >= 16 ? 0xffff : n <= 0 ? 0 : (1 << n) - 1);
}

FULGUR_INLINE int64_t MinInt(int64_t a, int64_t b) { return a < b ? a : b; }

// The 4 bytes at p in every lane.
FULGUR_INLINE __m512i Broadcast4(const std::byte* p) {
  int32_t word;
  __builtin_memcpy(&word, p, sizeof(word));
  return _mm512_set1_epi32(word);
}

FULGUR_INLINE __m512i LoadWord(const std::byte* p) {
  return _mm512_load_si512(reinterpret_cast<const void*>(p));
}

// Asks for the words that a decoding loop will read some steps later. Such loops do so much per
// word that the hardware's own prefetching falls behind; plain streams are faster without.
template <int64_t kBytes>
FULGUR_INLINE void PrefetchWords(const std::byte* words) {
  constexpr int64_t kAhead = 8192;
#pragma GCC unroll 20
  for (int64_t line = 0; line < kBytes; line += 64) {
    _mm_prefetch(words + kAhead + line, _MM_HINT_T1);
  }
}

// The sum of 16 lanes in a fixed order.
FULGUR_INLINE float SumLanes(__m512 v) { return _mm512_reduce_add_ps(v); }

}  // namespace fulgur::kernels::avx512

// fp32 weights with fp32 activations: router, hyper-connections.
#include "kernels/avx512/gemm.h"
#include "kernels/avx512/simd.h"
#include "kernels/packed_layout.h"

namespace fulgur::kernels::avx512 {
namespace {

constexpr int kRows = 8;  // 8 rows x 2 groups: 16 accumulators, enough to hide the latency

// y[r][32] of one panel.
template <int R>
void F32Tile(const float* w, int64_t in, const std::byte* const* rows, float* y, int64_t ldy,
             int64_t channels) {
  __m512 acc[R][2];
  const float* x[R];
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) {
    acc[r][0] = acc[r][1] = _mm512_setzero_ps();
    x[r] = reinterpret_cast<const float*>(rows[r]);
  }
  for (int64_t i = 0; i < in; ++i) {
    const __m512 first = _mm512_load_ps(w + i * 32);
    const __m512 second = _mm512_load_ps(w + i * 32 + 16);
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
      const __m512 value = _mm512_set1_ps(x[r][i]);
      acc[r][0] = _mm512_fmadd_ps(first, value, acc[r][0]);
      acc[r][1] = _mm512_fmadd_ps(second, value, acc[r][1]);
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) {
    _mm512_mask_storeu_ps(y + r * ldy, Lanes(channels), acc[r][0]);
    _mm512_mask_storeu_ps(y + r * ldy + 16, Lanes(channels - 16), acc[r][1]);
  }
}

void F32Panel(const float* w, int64_t in, const RowSet& x, float* y, int64_t ldy,
              int64_t channels) {
  using Tile = void (*)(const float*, int64_t, const std::byte* const*, float*, int64_t, int64_t);
  static constexpr Tile kTiles[] = {nullptr,    F32Tile<1>, F32Tile<2>, F32Tile<3>, F32Tile<4>,
                                    F32Tile<5>, F32Tile<6>, F32Tile<7>, F32Tile<8>};
  for (int64_t r = 0; r < x.rows; r += kRows) {
    kTiles[MinInt(kRows, x.rows - r)](w, in, x.x + r, y + r * ldy, ldy, channels);
  }
}

}  // namespace

void GemmF32(const PackedLinear& weight, int64_t block, const RowSet& x, float* y, int64_t ldy) {
  for (int64_t c = 0; c < 64 && block * 64 + c < weight.out; c += 32) {
    F32Panel(PanelF32(weight, (block * 64 + c) / 32, 0), weight.in, x, y + c, ldy,
             MinInt(32, weight.out - block * 64 - c));
  }
}

}  // namespace fulgur::kernels::avx512

// bf16 and FP8 weights with bf16 activations, summed in fp32: the kernel, for a family that says
// how two products are added. Included by one file per family, with that family's flags.
//
// Every element has two sums, one for each pair of inputs of a step of four; they are added at the
// end. FP8 codes become bf16 exactly; when a block of 128 inputs begins, the sums are rescaled by
// the ratio of its scale to the one before, so they need no second set of registers. Every tile
// decodes for itself: keeping decoded panels in the level-2 cache was no faster for any number of
// rows.
#pragma once

#include <utility>

#include "kernels/avx512/gemm.h"
#include "kernels/avx512/simd.h"
#include "kernels/packed_layout.h"

namespace fulgur::kernels::avx512 {
namespace {

constexpr int64_t kBlockSteps = kFp8BlockSize / kStepInputs;

// The words of one step: [group][pair].
struct Bf16Words {
  static constexpr int64_t kBytes = 256;
  static constexpr bool kDecodes = false;

  FULGUR_INLINE void Load(const std::byte* step, __m512i (&word)[2][2]) const {
#pragma GCC unroll 2
    for (int g = 0; g < 2; ++g) {
      word[g][0] = LoadWord(step + g * 128);
      word[g][1] = LoadWord(step + g * 128 + 64);
    }
  }
};

// High and low byte of the bf16 of each E4M3 code, without sign.
struct Fp8Table {
  alignas(64) uint8_t high[128];
  alignas(64) uint8_t low[128];
};

constexpr Fp8Table MakeFp8Table() {
  Fp8Table table{};
  for (uint32_t code = 0; code < 128; ++code) {
    const uint32_t exponent = code >> 3;
    const uint32_t mantissa = code & 7;
    uint32_t bits = (exponent + 120) << 7 | mantissa << 4;
    if (exponent == 0) {  // subnormal: mantissa 2^-9
      const uint32_t top = mantissa < 2 ? 0 : mantissa < 4 ? 1 : 2;
      bits = mantissa == 0 ? 0 : (127 - 9 + top) << 7 | ((mantissa << (7 - top)) & 0x7f);
    }
    if (code == 127) bits = 0x7fc0;  // NaN
    table.high[code] = static_cast<uint8_t>(bits >> 8);
    table.low[code] = static_cast<uint8_t>(bits & 0xff);
  }
  return table;
}

constexpr Fp8Table kFp8Table = MakeFp8Table();

// E4M3 to bf16 by two look-ups in 128 entries.
struct Fp8Words {
  static constexpr int64_t kBytes = 128;
  static constexpr bool kDecodes = true;
  __m512i high[2] = {_mm512_load_si512(kFp8Table.high), _mm512_load_si512(kFp8Table.high + 64)};
  __m512i low[2] = {_mm512_load_si512(kFp8Table.low), _mm512_load_si512(kFp8Table.low + 64)};

  FULGUR_INLINE void Decode(const std::byte* codes, __m512i (&word)[2]) const {
    const __m512i code = LoadWord(codes);
    const __m512i low_byte = _mm512_permutex2var_epi8(low[0], code, low[1]);
    const __m512i magnitude = _mm512_permutex2var_epi8(high[0], code, high[1]);
    // magnitude | (code & 0x80)
    const __m512i high_byte =
        _mm512_ternarylogic_epi32(magnitude, code, _mm512_set1_epi8(static_cast<char>(0x80)), 0xf8);
    word[0] = _mm512_unpacklo_epi8(low_byte, high_byte);
    word[1] = _mm512_unpackhi_epi8(low_byte, high_byte);
  }

  FULGUR_INLINE void Load(const std::byte* step, __m512i (&word)[2][2]) const {
    Decode(step, word[0]);
    Decode(step + 64, word[1]);
  }
};

// y[r][32] of one panel. `scales`: of blocks of 128 inputs; null: none.
template <typename Family, typename Words, int R>
void Bf16Tile(const Words& words, const std::byte* panel, int64_t steps, const float* scales,
              const std::byte* const* rows, float* y, int64_t ldy, int64_t channels) {
  __m512 acc[R][2][2];
  const std::byte* x[R];
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) {
    acc[r][0][0] = acc[r][0][1] = acc[r][1][0] = acc[r][1][1] = _mm512_setzero_ps();
    x[r] = rows[r];
  }
  for (int64_t s0 = 0; s0 < steps; s0 += kBlockSteps) {
    if (scales != nullptr && s0 > 0) {
      const float* scale = scales + s0 / kBlockSteps;
      const __m512 ratio = _mm512_set1_ps(scale[-1] / scale[0]);
#pragma GCC unroll 8
      for (int r = 0; r < R; ++r) {
#pragma GCC unroll 2
        for (int g = 0; g < 2; ++g) {
          acc[r][g][0] = _mm512_mul_ps(acc[r][g][0], ratio);
          acc[r][g][1] = _mm512_mul_ps(acc[r][g][1], ratio);
        }
      }
    }
    const int64_t end = MinInt(s0 + kBlockSteps, steps);
    for (int64_t s = s0; s < end; ++s) {
      __m512i word[2][2];
      words.Load(panel + s * Words::kBytes, word);
      if constexpr (Words::kDecodes) PrefetchWords<Words::kBytes>(panel + s * Words::kBytes);
#pragma GCC unroll 8
      for (int r = 0; r < R; ++r) {
#pragma GCC unroll 2
        for (int p = 0; p < 2; ++p) {
          const auto value = Family::Pair(x[r] + s * 8 + p * 4);
          acc[r][0][p] = Family::MultiplyAdd(acc[r][0][p], word[0][p], value);
          acc[r][1][p] = Family::MultiplyAdd(acc[r][1][p], word[1][p], value);
        }
      }
    }
  }
  const float last = scales == nullptr ? 1.0F : scales[CeilDiv(steps, kBlockSteps) - 1];
  const __m512 scale = _mm512_set1_ps(last);
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 2
    for (int g = 0; g < 2; ++g) {
      const __m512 sum = _mm512_mul_ps(_mm512_add_ps(acc[r][g][0], acc[r][g][1]), scale);
      _mm512_mask_storeu_ps(y + r * ldy + g * 16, Lanes(channels - g * 16), sum);
    }
  }
}

template <typename Words>
using Bf16TileFn = void (*)(const Words&, const std::byte*, int64_t, const float*,
                            const std::byte* const*, float*, int64_t, int64_t);

// Tiles of 1, 2, ... rows.
template <typename Family, typename Words, int... kLess>
constexpr auto Bf16Tiles(std::integer_sequence<int, kLess...>) {
  struct Tiles {
    Bf16TileFn<Words> of_rows[1 + sizeof...(kLess)];
  };
  return Tiles{{nullptr, Bf16Tile<Family, Words, kLess + 1>...}};
}

template <typename Family, typename Words, int kRows>
void Bf16Rows(const Words& words, const std::byte* panel, int64_t steps, const float* scales,
              const RowSet& x, float* y, int64_t ldy, int64_t channels) {
  static constexpr auto kTiles = Bf16Tiles<Family, Words>(std::make_integer_sequence<int, kRows>());
  for (int64_t r = 0; r < x.rows; r += kRows) {
    kTiles.of_rows[MinInt(kRows, x.rows - r)](words, panel, steps, scales, x.x + r, y + r * ldy,
                                              ldy, channels);
  }
}

template <typename Family>
void Bf16Panel(const PackedLinear& weight, const std::byte* panel, const RowSet& x, float* y,
               int64_t ldy, int64_t channels) {
  const int64_t steps = CeilDiv(weight.in, kStepInputs);
  if (weight.format == WeightFormat::kBf16) {
    return Bf16Rows<Family, Bf16Words, Family::kRows>({}, panel, steps, nullptr, x, y, ldy,
                                                      channels);
  }
  const Fp8Words words;
  const float* scales = PanelScales(weight, panel);
  Bf16Rows<Family, Fp8Words, Family::kFp8Rows>(words, panel, steps, scales, x, y, ldy, channels);
}

template <typename Family>
void GemmBf16(const PackedLinear& weight, int64_t block, const RowSet& x, float* y, int64_t ldy) {
  for (int64_t c = 0; c < 64 && block * 64 + c < weight.out; c += 32) {
    const std::byte* panel = Panel(weight, (block * 64 + c) / 32);
    Bf16Panel<Family>(weight, panel, x, y + c, ldy, MinInt(32, weight.out - block * 64 - c));
  }
}

}  // namespace
}  // namespace fulgur::kernels::avx512

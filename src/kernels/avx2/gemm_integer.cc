// int8, int4 and FP4 weights with int8 activations, exact in int32.
//
// VPMADDUBSW multiplies unsigned by signed bytes and saturates, so magnitudes of the weights meet
// activations with the weights' signs. 4-bit weights are small enough to sum a block of 32 inputs
// in int16; an FP4 block is shifted to its scale after that.
#include "kernels/avx2/gemm.h"
#include "kernels/avx2/simd.h"
#include "kernels/packed_layout.h"
#include "kernels/scratch.h"

namespace fulgur::kernels::avx2 {
namespace {

constexpr int kInt8Rows = 2;    // 2 rows x 4 registers of channels: 8 sums
constexpr int kNibbleRows = 3;  // one int16 sum each

FULGUR_INLINE void AddTo(int32_t* sums, __m256i v) {
  auto* at = reinterpret_cast<__m256i*>(sums);
  _mm256_storeu_si256(at, _mm256_add_epi32(_mm256_loadu_si256(at), v));
}

// sums[r][32 channels] over steps of 4 inputs, for one half of a panel of 64 channels.
template <int R>
void Int8Tile(const std::byte* w, int64_t steps, const std::byte* const* rows, int32_t* sums) {
  __m256i acc[R][4];
#pragma GCC unroll 2
  for (int r = 0; r < R; ++r) {
    acc[r][0] = acc[r][1] = acc[r][2] = acc[r][3] = _mm256_setzero_si256();
  }
  const __m256i ones = _mm256_set1_epi16(1);
  const __m256i bias = _mm256_set1_epi8(static_cast<char>(0x80));
  for (int64_t s = 0; s < steps; ++s) {
#pragma GCC unroll 4
    for (int part = 0; part < 4; ++part) {
      const __m256i weight = _mm256_xor_si256(LoadBytes(w + s * 256 + part * 32), bias);
      const __m256i magnitude = _mm256_abs_epi8(weight);
#pragma GCC unroll 2
      for (int r = 0; r < R; ++r) {
        const __m256i pairs = PairProducts(magnitude, weight, Broadcast4(rows[r] + s * 4));
        acc[r][part] = _mm256_add_epi32(acc[r][part], _mm256_madd_epi16(pairs, ones));
      }
    }
  }
#pragma GCC unroll 2
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 4
    for (int part = 0; part < 4; ++part) AddTo(sums + r * 64 + part * 8, acc[r][part]);
  }
}

void Int8Sums(const std::byte* w, int64_t steps, const RowSet& x, int32_t* sums) {
  for (int64_t half = 0; half < 2; ++half) {
    int64_t r = 0;
    for (; r + kInt8Rows <= x.rows; r += kInt8Rows) {
      Int8Tile<kInt8Rows>(w + half * 128, steps, x.x + r, sums + r * 64 + half * 32);
    }
    if (r < x.rows) Int8Tile<1>(w + half * 128, steps, x.x + r, sums + r * 64 + half * 32);
  }
}

alignas(16) constexpr int8_t kInt4Values[16] = {0,  1,  2,  3,  4,  5,  6,  7,
                                                -8, -7, -6, -5, -4, -3, -2, -1};
alignas(16) constexpr int8_t kTwiceE2M1[16] = {0, 1,  2,  3,  4,  6,  8,  12,
                                               0, -1, -2, -3, -4, -6, -8, -12};

FULGUR_INLINE __m256i Table(const int8_t* entries) {
  return _mm256_broadcastsi128_si256(_mm_load_si128(reinterpret_cast<const __m128i*>(entries)));
}

struct Int4Units {
  static constexpr int64_t kBytes = kNibbleUnitBytes;
  static FULGUR_INLINE __m256i Values() { return Table(kInt4Values); }
  FULGUR_INLINE void LoadScales(const std::byte*, int64_t) {}
  FULGUR_INLINE __m256i Scaled(__m256i sum) const { return sum; }
};

struct Fp4Units {
  static constexpr int64_t kBytes = kFp4UnitBytes;
  static FULGUR_INLINE __m256i Values() { return Table(kTwiceE2M1); }

  __m256i plane;  // the wanted one
  __m256i shift = {};
  __m256i wanted = {};

  // Of 8 channels, at `at` in the unit.
  FULGUR_INLINE void LoadScales(const std::byte* unit, int64_t at) {
    const auto* bytes = reinterpret_cast<const __m128i*>(unit + kNibbleUnitBytes + at);
    const __m256i scale = _mm256_cvtepu8_epi32(_mm_loadl_epi64(bytes));
    shift = _mm256_and_si256(_mm256_srli_epi32(scale, 4), _mm256_set1_epi32(3));
    wanted = _mm256_cmpeq_epi32(_mm256_srli_epi32(scale, 6), plane);
  }
  FULGUR_INLINE __m256i Scaled(__m256i sum) const {
    return _mm256_and_si256(_mm256_sllv_epi32(sum, shift), wanted);
  }
};

// pairs[r] += products of 4 inputs with 8 channels. Sums and addresses are hidden from the compiler
// after every step, or else it loads ahead and sums as trees, and runs out of registers.
template <int R>
FULGUR_INLINE void AddCodes(__m256i values, __m256i codes, const std::byte* (&x)[R], int64_t input,
                            __m256i (&pairs)[R]) {
  const __m256i weight = _mm256_shuffle_epi8(values, codes);
  const __m256i magnitude = _mm256_abs_epi8(weight);
#pragma GCC unroll 4
  for (int r = 0; r < R; ++r) {
    const __m256i products = PairProducts(magnitude, weight, Broadcast4(x[r] + input));
    pairs[r] = _mm256_add_epi16(pairs[r], products);
    asm("" : "+x"(pairs[r]), "+r"(x[r]));
  }
}

// sums[r][8 channels] += products of the 32 inputs of a block. 8 products of at most 2 x 12 x 127
// fit int16.
template <typename Units, int R>
FULGUR_INLINE void AddBlock(const Units& units, const std::byte* words, const std::byte* (&x)[R],
                            int64_t input, int32_t* sums) {
  const __m256i nibble = _mm256_set1_epi8(0x0f);
  const __m256i values = Units::Values();
  __m256i pairs[R];
#pragma GCC unroll 4
  for (int r = 0; r < R; ++r) pairs[r] = _mm256_setzero_si256();
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    const __m256i word = LoadBytes(words + i * 64);
    AddCodes<R>(values, _mm256_and_si256(word, nibble), x, input + i * 8, pairs);
    AddCodes<R>(values, _mm256_and_si256(_mm256_srli_epi16(word, 4), nibble), x, input + i * 8 + 4,
                pairs);
  }
  const __m256i ones = _mm256_set1_epi16(1);
#pragma GCC unroll 4
  for (int r = 0; r < R; ++r) {
    AddTo(sums + r * 64, units.Scaled(_mm256_madd_epi16(pairs[r], ones)));
  }
}

// sums[r][32 channels] of one panel. Units that `unit_bits` clears are skipped (null: none is).
template <typename Units, int R>
void NibbleTile(Units units, const std::byte* panel, int64_t num_units, const std::byte* unit_bits,
                const std::byte* const* rows, int32_t* sums) {
  const std::byte* x[R];
#pragma GCC unroll 4
  for (int r = 0; r < R; ++r) x[r] = rows[r];
  for (int64_t u = 0; u < num_units; ++u) {
    if (unit_bits != nullptr && !UnitHasPlanes(unit_bits, u)) continue;
    const std::byte* unit = panel + u * Units::kBytes;
    for (int64_t part = 0; part < 4; ++part) {
      for (int64_t block = 0; block < 2; ++block) {
        units.LoadScales(unit, block * 32 + part * 8);
        const std::byte* words = unit + part / 2 * 512 + block * 256 + part % 2 * 32;
        AddBlock<Units, R>(units, words, x, u * kUnitInputs + block * 32, sums + part * 8);
      }
    }
  }
}

template <typename Units>
void NibbleSums(const Units& units, const std::byte* panel, int64_t num_units,
                const std::byte* unit_bits, const RowSet& x, int32_t* sums) {
  using Tile = void (*)(Units, const std::byte*, int64_t, const std::byte*, const std::byte* const*,
                        int32_t*);
  static constexpr Tile kTiles[] = {nullptr, NibbleTile<Units, 1>, NibbleTile<Units, 2>,
                                    NibbleTile<Units, 3>};
  for (int64_t r = 0; r < x.rows; r += kNibbleRows) {
    kTiles[MinInt(kNibbleRows, x.rows - r)](units, panel, num_units, unit_bits, x.x + r,
                                            sums + r * 64);
  }
}

int32_t* ZeroSums(ScratchUse use, int64_t rows) {
  std::byte* sums = Scratch(use, kMaxRows * 64 * 4);
  __builtin_memset(sums, 0, static_cast<size_t>(rows) * 64 * 4);
  return reinterpret_cast<int32_t*>(sums);
}

// totals[r][32] += sums of the planes above 0, in ascending order.
void AddPlanes(const PackedLinear& weight, const std::byte* panel, const RowSet& x, float* totals) {
  const int64_t num_units = CeilDiv(weight.in, kUnitInputs);
  const std::byte* unit_bits = PanelUnitBits(weight, panel);
  if (!AnyPlanes(weight, panel)) return;
  float factor = 1.0F;
  for (int plane = 1; plane < kFp4Planes; ++plane) {
    factor /= 16.0F;
    int32_t* sums = ZeroSums(ScratchUse::kSecondTile, x.rows);
    NibbleSums(Fp4Units{_mm256_set1_epi32(plane)}, panel, num_units, unit_bits, x, sums);
    for (int64_t r = 0; r < x.rows; ++r) {
      for (int64_t c = 0; c < 32; ++c) {
        totals[r * 64 + c] += static_cast<float>(sums[r * 64 + c]) * factor;
      }
    }
  }
}

// y = totals * channel scale * row scale for the channels [first, first + channels) of the block.
void ApplyScales(const RowSet& x, const float* totals, const float* scales, int64_t channels,
                 float* y, int64_t ldy) {
  for (int64_t r = 0; r < x.rows; ++r) {
    for (int64_t c = 0; c < channels; ++c) {
      y[r * ldy + c] = totals[r * 64 + c] * scales[c] * x.scale[r];
    }
  }
}

// Both may be the same memory.
void ToFloats(const int32_t* sums, int64_t count, float* totals) {
  for (int64_t i = 0; i < count; i += 8) {
    _mm256_storeu_ps(totals + i, _mm256_cvtepi32_ps(LoadBytes(sums + i)));
  }
}

void GemmInt8(const PackedLinear& weight, int64_t block, const RowSet& x, float* y, int64_t ldy) {
  int32_t* sums = ZeroSums(ScratchUse::kTile, x.rows);
  auto* totals = reinterpret_cast<float*>(sums);
  const std::byte* panel = Panel(weight, block);
  Int8Sums(panel, CeilDiv(weight.in, kStepInputs), x, sums);
  ToFloats(sums, x.rows * 64, totals);
  ApplyScales(x, totals, PanelScales(weight, panel), MinInt(64, weight.out - block * 64), y, ldy);
}

}  // namespace

void GemmInteger(const PackedLinear& weight, int64_t block, const RowSet& x, float* y,
                 int64_t ldy) {
  if (weight.format == WeightFormat::kInt8) return GemmInt8(weight, block, x, y, ldy);
  const int64_t num_units = CeilDiv(weight.in, kUnitInputs);
  for (int64_t c = 0; c < 64 && block * 64 + c < weight.out; c += 32) {
    int32_t* sums = ZeroSums(ScratchUse::kTile, x.rows);
    auto* totals = reinterpret_cast<float*>(sums);
    const std::byte* panel = Panel(weight, (block * 64 + c) / 32);
    if (weight.format == WeightFormat::kInt4) {
      NibbleSums(Int4Units{}, panel, num_units, nullptr, x, sums);
      ToFloats(sums, x.rows * 64, totals);
    } else {
      NibbleSums(Fp4Units{_mm256_setzero_si256()}, panel, num_units, nullptr, x, sums);
      ToFloats(sums, x.rows * 64, totals);
      AddPlanes(weight, panel, x, totals);
    }
    ApplyScales(x, totals, PanelScales(weight, panel), MinInt(32, weight.out - block * 64 - c),
                y + c, ldy);
  }
}

}  // namespace fulgur::kernels::avx2

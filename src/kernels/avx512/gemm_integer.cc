// int8, int4 and FP4 weights with int8 activations, by VPDPBUSD.
//
// Weights enter as unsigned bytes w + 128 (stored so, or looked up so), activations as signed ones;
// 128 times the sum of the row is subtracted at the end. All sums are exact in int32.
#include "kernels/avx512/gemm.h"
#include "kernels/avx512/simd.h"
#include "kernels/packed_layout.h"
#include "kernels/scratch.h"

namespace fulgur::kernels::avx512 {
namespace {

constexpr int kInt8Rows = 6;   // 6 rows x 4 groups: 24 accumulators
constexpr int kFusedRows = 8;  // 8 rows x 2 groups while decoding; more rows: decode once

// acc[r][64] = sum over steps of 4 inputs, weights of 64 channels as unsigned bytes.
template <int R>
void Int8Tile(const std::byte* w, int64_t steps, const std::byte* const* rows, int32_t* acc_out) {
  __m512i acc[R][4];
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 4
    for (int g = 0; g < 4; ++g) acc[r][g] = _mm512_setzero_si512();
  }
  const std::byte* x[R];
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) x[r] = rows[r];
  for (int64_t s = 0; s < steps; ++s) {
    __m512i word[4];
#pragma GCC unroll 4
    for (int g = 0; g < 4; ++g) word[g] = LoadWord(w + s * 256 + g * 64);
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
      const __m512i value = Broadcast4(x[r] + s * 4);
#pragma GCC unroll 4
      for (int g = 0; g < 4; ++g) acc[r][g] = _mm512_dpbusd_epi32(acc[r][g], word[g], value);
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 4
    for (int g = 0; g < 4; ++g) _mm512_storeu_si512(acc_out + r * 64 + g * 16, acc[r][g]);
  }
}

void Int8Rows(const std::byte* w, int64_t steps, const RowSet& x, int32_t* acc) {
  using Tile = void (*)(const std::byte*, int64_t, const std::byte* const*, int32_t*);
  static constexpr Tile kTiles[] = {nullptr,     Int8Tile<1>, Int8Tile<2>, Int8Tile<3>,
                                    Int8Tile<4>, Int8Tile<5>, Int8Tile<6>};
  for (int64_t r = 0; r < x.rows; r += kInt8Rows) {
    kTiles[MinInt(kInt8Rows, x.rows - r)](w, steps, x.x + r, acc + r * 64);
  }
}

// Looks up w + 128 of 4-bit codes, for the channels of one group and 32 inputs.
struct NibbleDecoder {
  __m512i table;   // 64 entries: shift << 4 | code
  __m512i select;  // 0x0f where the plane is the wanted one, else 0: code 0 is weight 0
  __m512i shift;   // shift << 4, per channel

  FULGUR_INLINE __m512i Low(__m512i word) const { return LookUp(word); }
  FULGUR_INLINE __m512i High(__m512i word) const { return LookUp(_mm512_srli_epi16(word, 4)); }

 private:
  FULGUR_INLINE __m512i LookUp(__m512i codes) const {
    // (codes & select) | shift
    const __m512i index = _mm512_ternarylogic_epi32(codes, select, shift, 0xea);
    return _mm512_permutexvar_epi8(index, table);
  }
};

alignas(64) constexpr int8_t kFp4Table[64] = {
    // 2 E2M1 2^shift, 128 added below
    0, 1, 2,  3,  4,  6,  8,  12, 0, -1, -2,  -3,  -4,  -6,  -8,  -12,  //
    0, 2, 4,  6,  8,  12, 16, 24, 0, -2, -4,  -6,  -8,  -12, -16, -24,  //
    0, 4, 8,  12, 16, 24, 32, 48, 0, -4, -8,  -12, -16, -24, -32, -48,  //
    0, 8, 16, 24, 32, 48, 64, 96, 0, -8, -16, -24, -32, -48, -64, -96};

alignas(64) constexpr int8_t kInt4Table[64] = {0,  1,  2,  3,  4,  5,  6,  7,
                                               -8, -7, -6, -5, -4, -3, -2, -1};

// Every byte of a lane of 4 = the lane's channel: 16 scale bytes spread over a word.
FULGUR_INLINE __m512i SpreadOverLanes(__m128i bytes) {
  return _mm512_mullo_epi32(_mm512_cvtepu8_epi32(bytes), _mm512_set1_epi32(0x01010101));
}

struct Fp4Units {
  static constexpr int64_t kBytes = kFp4UnitBytes;
  __m512i table =
      _mm512_xor_si512(_mm512_load_si512(kFp4Table), _mm512_set1_epi8(static_cast<char>(0x80)));
  __m512i plane;  // plane << 6 in every byte

  FULGUR_INLINE NibbleDecoder Decoder(const std::byte* unit, int group, int block) const {
    const auto* scales = unit + kNibbleUnitBytes + block * 32 + group * 16;
    const __m512i spread =
        SpreadOverLanes(_mm_load_si128(reinterpret_cast<const __m128i*>(scales)));
    const __mmask64 wanted = _mm512_cmpeq_epi8_mask(
        _mm512_and_si512(spread, _mm512_set1_epi8(static_cast<char>(0xc0))), plane);
    return {table, _mm512_maskz_set1_epi8(wanted, 0x0f), spread};
  }
};

struct Int4Units {
  static constexpr int64_t kBytes = kNibbleUnitBytes;
  __m512i table =
      _mm512_xor_si512(_mm512_load_si512(kInt4Table), _mm512_set1_epi8(static_cast<char>(0x80)));

  FULGUR_INLINE NibbleDecoder Decoder(const std::byte*, int, int) const {
    return {table, _mm512_set1_epi8(0x0f), _mm512_setzero_si512()};
  }
};

// With few rows, additions to one sum would wait for each other: two sums, for the low and for the
// high codes. They are exact, so their order does not matter.
constexpr int NibbleSums(int rows) { return rows <= 4 ? 2 : 1; }

// sums += products of the 32 inputs of one block with the 16 channels of a group.
template <int R, int kSums>
FULGUR_INLINE void AddNibbleBlock(const NibbleDecoder& decoder, const std::byte* words,
                                  const std::byte* (&x)[R], int64_t input,
                                  __m512i (&sums)[R][kSums]) {
  // Both groups of a panel read the same activations. Hidden from the compiler, or else it keeps
  // them all in registers from one group to the next, and has none left for the sums.
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) asm("" : "+r"(x[r]));
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    const __m512i word = LoadWord(words + i * 64);
    const __m512i low = decoder.Low(word);
    const __m512i high = decoder.High(word);
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
      const std::byte* at = x[r] + input + i * 8;
      __m512i& low_sum = sums[r][0];
      __m512i& high_sum = sums[r][kSums - 1];
      low_sum = _mm512_dpbusd_epi32(low_sum, low, Broadcast4(at));
      high_sum = _mm512_dpbusd_epi32(high_sum, high, Broadcast4(at + 4));
    }
  }
}

// acc[r * 64 + c] of one panel of 32 channels, decoding on the way. Units that `unit_bits` clears
// are skipped (null: none is).
template <typename Units, int R>
void NibbleTile(const Units& units, const std::byte* panel, int64_t num_units,
                const std::byte* unit_bits, const std::byte* const* rows, int32_t* acc_out) {
  constexpr int kSums = NibbleSums(R);
  __m512i first[R][kSums];
  __m512i second[R][kSums];
  const std::byte* x[R];
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 2
    for (int i = 0; i < kSums; ++i) first[r][i] = second[r][i] = _mm512_setzero_si512();
    x[r] = rows[r];
  }
  for (int64_t u = 0; u < num_units; ++u) {
    if (unit_bits != nullptr && !UnitHasPlanes(unit_bits, u)) continue;
    const std::byte* unit = panel + u * Units::kBytes;
    PrefetchWords<Units::kBytes>(unit);
    const int64_t input = u * 64;
    AddNibbleBlock<R>(units.Decoder(unit, 0, 0), unit, x, input, first);
    AddNibbleBlock<R>(units.Decoder(unit, 1, 0), unit + 512, x, input, second);
    AddNibbleBlock<R>(units.Decoder(unit, 0, 1), unit + 256, x, input + 32, first);
    AddNibbleBlock<R>(units.Decoder(unit, 1, 1), unit + 768, x, input + 32, second);
  }
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) {
    if constexpr (kSums == 2) {
      first[r][0] = _mm512_add_epi32(first[r][0], first[r][1]);
      second[r][0] = _mm512_add_epi32(second[r][0], second[r][1]);
    }
    _mm512_storeu_si512(acc_out + r * 64, first[r][0]);
    _mm512_storeu_si512(acc_out + r * 64 + 16, second[r][0]);
  }
}

template <typename Units>
void NibbleRows(const Units& units, const std::byte* panel, int64_t num_units,
                const std::byte* unit_bits, const RowSet& x, int32_t* acc) {
  using Tile = void (*)(const Units&, const std::byte*, int64_t, const std::byte*,
                        const std::byte* const*, int32_t*);
  static constexpr Tile kTiles[] = {nullptr,
                                    NibbleTile<Units, 1>,
                                    NibbleTile<Units, 2>,
                                    NibbleTile<Units, 3>,
                                    NibbleTile<Units, 4>,
                                    NibbleTile<Units, 5>,
                                    NibbleTile<Units, 6>,
                                    NibbleTile<Units, 7>,
                                    NibbleTile<Units, 8>};
  for (int64_t r = 0; r < x.rows; r += kFusedRows) {
    kTiles[MinInt(kFusedRows, x.rows - r)](units, panel, num_units, unit_bits, x.x + r,
                                           acc + r * 64);
  }
}

// Writes a panel as bytes w + 128 into half of a 64-channel int8 panel.
template <typename Units>
void DecodePanel(const Units& units, const std::byte* panel, int64_t num_units, std::byte* out) {
  for (int64_t u = 0; u < num_units; ++u) {
    const std::byte* unit = panel + u * Units::kBytes;
    PrefetchWords<Units::kBytes>(unit);
    for (int g = 0; g < 2; ++g) {
      for (int b = 0; b < 2; ++b) {
        const NibbleDecoder decoder = units.Decoder(unit, g, b);
#pragma GCC unroll 4
        for (int i = 0; i < 4; ++i) {
          const __m512i word = LoadWord(unit + g * 512 + (b * 4 + i) * 64);
          std::byte* step = out + (u * 16 + b * 8 + i * 2) * 256 + g * 64;
          _mm512_store_si512(step, decoder.Low(word));
          _mm512_store_si512(step + 256, decoder.High(word));
        }
      }
    }
  }
}

// The one or two panels of a block.
struct BlockPanels {
  const std::byte* panel[2];
  int count;
};

BlockPanels PanelsOf(const PackedLinear& weight, int64_t block) {
  const bool second = block * 64 + 32 < weight.out;
  return {{Panel(weight, block * 2), second ? Panel(weight, block * 2 + 1) : nullptr},
          second ? 2 : 1};
}

template <typename Units>
void SumNibbles(const Units& units, const BlockPanels& panels, int64_t num_units, const RowSet& x,
                int32_t* acc) {
  if (x.rows <= kFusedRows) {
    for (int p = 0; p < panels.count; ++p) {
      NibbleRows(units, panels.panel[p], num_units, nullptr, x, acc + p * 32);
    }
    return;
  }
  std::byte* decoded = Scratch(ScratchUse::kDecodedPanel, num_units * kUnitInputs * 64);
  for (int p = 0; p < panels.count; ++p) {
    DecodePanel(units, panels.panel[p], num_units, decoded + p * 128);
  }
  Int8Rows(decoded, num_units * (kUnitInputs / kStepInputs), x, acc);
}

// y += (acc - 128 sum) * factor for the 32 channels of a panel, before scales.
void AddPlane(const RowSet& x, const int32_t* acc, float factor, float* totals) {
  const __m512 f = _mm512_set1_ps(factor);
  for (int64_t r = 0; r < x.rows; ++r) {
    const __m512i bias = _mm512_set1_epi32(128 * x.sum[r]);
    for (int64_t c = 0; c < 32; c += 16) {
      const __m512i sum = _mm512_sub_epi32(_mm512_loadu_si512(acc + r * 64 + c), bias);
      float* total = totals + r * 64 + c;
      _mm512_storeu_ps(
          total, _mm512_add_ps(_mm512_loadu_ps(total), _mm512_mul_ps(_mm512_cvtepi32_ps(sum), f)));
    }
  }
}

// The sums of the units in planes above 0; skipped units must count as weight 0, not as byte 0.
void AddPlanes(const PackedLinear& weight, const std::byte* panel, const RowSet& x, float* totals) {
  const int64_t num_units = CeilDiv(weight.in, kUnitInputs);
  const std::byte* unit_bits = PanelUnitBits(weight, panel);
  auto* acc = reinterpret_cast<int32_t*>(Scratch(ScratchUse::kSecondTile, kMaxRows * 64 * 4));
  RowSet partial = x;
  for (int64_t r = 0; r < x.rows; ++r) {
    int32_t sum = 0;
    for (int64_t u = 0; u < num_units; ++u) {
      if (!UnitHasPlanes(unit_bits, u)) continue;
      const __m512i ones = _mm512_set1_epi8(1);
      const __m512i values = _mm512_loadu_si512(x.x[r] + u * 64);
      sum += _mm512_reduce_add_epi32(_mm512_dpbusd_epi32(_mm512_setzero_si512(), ones, values));
    }
    partial.sum[r] = sum;
  }
  float factor = 1.0F;
  for (int plane = 1; plane < kFp4Planes; ++plane) {
    factor /= 16.0F;
    Fp4Units units;
    units.plane = _mm512_set1_epi8(static_cast<char>(plane << 6));
    NibbleRows(units, panel, num_units, unit_bits, partial, acc);
    AddPlane(partial, acc, factor, totals);
  }
}

// totals = acc - 128 sum, as fp32; both may be the same memory.
void SubtractBias(const RowSet& x, const int32_t* acc, float* totals) {
  for (int64_t r = 0; r < x.rows; ++r) {
    const __m512i bias = _mm512_set1_epi32(128 * x.sum[r]);
    for (int64_t c = 0; c < 64; c += 16) {
      const __m512i sum = _mm512_sub_epi32(_mm512_loadu_si512(acc + r * 64 + c), bias);
      _mm512_storeu_ps(totals + r * 64 + c, _mm512_cvtepi32_ps(sum));
    }
  }
}

// y = totals * channel scale * row scale, for `channels` of the 64.
void ApplyScales(const RowSet& x, const float* totals, const float* const* scales, int64_t channels,
                 float* y, int64_t ldy) {
  for (int64_t r = 0; r < x.rows; ++r) {
    const __m512 row_scale = _mm512_set1_ps(x.scale[r]);
    for (int64_t c = 0; c < channels; c += 16) {
      const __m512 scale = _mm512_loadu_ps(scales[c / 32] + c % 32);
      const __m512 scaled = _mm512_mul_ps(_mm512_loadu_ps(totals + r * 64 + c), scale);
      _mm512_mask_storeu_ps(y + r * ldy + c, Lanes(channels - c), _mm512_mul_ps(scaled, row_scale));
    }
  }
}

void Sums(const PackedLinear& weight, int64_t block, const RowSet& x, int32_t* acc) {
  const int64_t num_units = CeilDiv(weight.in, kUnitInputs);
  if (weight.format == WeightFormat::kInt8) {
    return Int8Rows(Panel(weight, block), CeilDiv(weight.in, kStepInputs), x, acc);
  }
  if (weight.format == WeightFormat::kInt4) {
    return SumNibbles(Int4Units{}, PanelsOf(weight, block), num_units, x, acc);
  }
  Fp4Units units;
  units.plane = _mm512_setzero_si512();
  SumNibbles(units, PanelsOf(weight, block), num_units, x, acc);
}

}  // namespace

void GemmInteger(const PackedLinear& weight, int64_t block, const RowSet& x, float* y,
                 int64_t ldy) {
  auto* acc = reinterpret_cast<int32_t*>(Scratch(ScratchUse::kTile, kMaxRows * 64 * 4));
  auto* totals = reinterpret_cast<float*>(acc);
  Sums(weight, block, x, acc);
  SubtractBias(x, acc, totals);
  const int64_t channels = MinInt(64, weight.out - block * 64);
  const float* scales[2];
  if (weight.format == WeightFormat::kInt8) {
    scales[0] = PanelScales(weight, Panel(weight, block));
    scales[1] = scales[0] + 32;
  } else {
    const BlockPanels panels = PanelsOf(weight, block);
    for (int p = 0; p < panels.count; ++p) scales[p] = PanelScales(weight, panels.panel[p]);
    for (int p = 0; p < panels.count && weight.format == WeightFormat::kFp4; ++p) {
      if (!AnyPlanes(weight, panels.panel[p])) continue;
      AddPlanes(weight, panels.panel[p], x, totals + p * 32);
    }
  }
  ApplyScales(x, totals, scales, channels, y, ldy);
}

}  // namespace fulgur::kernels::avx512

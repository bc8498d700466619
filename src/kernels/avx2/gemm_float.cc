// fp32, bf16 and FP8 weights: fp32 FMA, one sum per element over the inputs in order.
//
// bf16 activations are widened once per block, so that all formats multiply fp32 rows. When a block
// of 128 FP8 inputs begins, the sums are rescaled by the ratio of its scale to the one before.
#include "kernels/avx2/gemm.h"
#include "kernels/avx2/simd.h"
#include "kernels/packed_layout.h"
#include "kernels/scratch.h"

namespace fulgur::kernels::avx2 {
namespace {

constexpr int kRows = 2;  // 2 rows x 4 registers of channels: 8 sums
constexpr int64_t kBlockSteps = kFp8BlockSize / kStepInputs;

// Weights of 4 inputs (a step) and the 8 channels of eighth `part` of a panel.
struct StepWeights {
  __m256 input[4];
};

struct F32Words {
  static constexpr int64_t kBytes = 32 * 4 * kStepInputs;
  static FULGUR_INLINE StepWeights Load(const std::byte* step, int part) {
    const float* w = reinterpret_cast<const float*>(step) + part * 8;
    return {{_mm256_loadu_ps(w), _mm256_loadu_ps(w + 32), _mm256_loadu_ps(w + 64),
             _mm256_loadu_ps(w + 96)}};
  }
};

FULGUR_INLINE StepWeights WidenPairs(__m256i first, __m256i second) {
  return {{LowerBf16(first), UpperBf16(first), LowerBf16(second), UpperBf16(second)}};
}

struct Bf16Words {
  static constexpr int64_t kBytes = 32 * 2 * kStepInputs;
  static FULGUR_INLINE StepWeights Load(const std::byte* step, int part) {
    const std::byte* w = step + part / 2 * 128 + part % 2 * 32;
    return WidenPairs(LoadBytes(w), LoadBytes(w + 64));
  }
};

// E4M3 to bf16, exactly: high and low byte of normal numbers from either half of the code, of
// subnormal ones by look-up.
struct Fp8Words {
  static constexpr int64_t kBytes = 32 * kStepInputs;
  static FULGUR_INLINE StepWeights Load(const std::byte* step, int part) {
    const __m256i code = LoadBytes(step + part / 2 * 64 + part % 2 * 32);
    const __m256i nibble = _mm256_set1_epi8(0x0f);
    const __m256i upper = _mm256_and_si256(_mm256_srli_epi16(code, 4), nibble);
    const __m256i lower = _mm256_and_si256(code, nibble);
    __m256i high = _mm256_shuffle_epi8(Table(kHigh), upper);
    __m256i low = _mm256_slli_epi16(lower, 4);
    const __m256i magnitude = _mm256_and_si256(code, _mm256_set1_epi8(0x7f));
    const __m256i subnormal = _mm256_cmpgt_epi8(_mm256_set1_epi8(8), magnitude);
    const __m256i sign = _mm256_andnot_si256(_mm256_set1_epi8(0x7f), code);
    const __m256i tiny = _mm256_or_si256(_mm256_shuffle_epi8(Table(kTinyHigh), lower), sign);
    high = _mm256_blendv_epi8(high, tiny, subnormal);
    low = _mm256_blendv_epi8(low, _mm256_shuffle_epi8(Table(kTinyLow), lower), subnormal);
    const __m256i nan = _mm256_cmpeq_epi8(magnitude, _mm256_set1_epi8(0x7f));
    high = _mm256_or_si256(high, _mm256_and_si256(nan, _mm256_set1_epi8(0x7f)));
    low = _mm256_or_si256(low, nan);
    return WidenPairs(_mm256_unpacklo_epi8(low, high), _mm256_unpackhi_epi8(low, high));
  }

 private:
  // Of sign and the upper three bits of the exponent: (exponent + 120) / 2.
  alignas(16) static constexpr uint8_t kHigh[16] = {0x3c, 0x3d, 0x3e, 0x3f, 0x40, 0x41, 0x42, 0x43,
                                                    0xbc, 0xbd, 0xbe, 0xbf, 0xc0, 0xc1, 0xc2, 0xc3};
  // mantissa 2^-9 for mantissas 0 to 7.
  alignas(16) static constexpr uint8_t kTinyHigh[16] = {0,    0x3b, 0x3b, 0x3b,
                                                        0x3c, 0x3c, 0x3c, 0x3c};
  alignas(16) static constexpr uint8_t kTinyLow[16] = {0, 0x00, 0x80, 0xc0, 0x00, 0x20, 0x40, 0x60};

  static FULGUR_INLINE __m256i Table(const uint8_t* entries) {
    return _mm256_broadcastsi128_si256(_mm_load_si128(reinterpret_cast<const __m128i*>(entries)));
  }
};

// sums of the inputs of a step.
template <int R>
FULGUR_INLINE void AddStep(const StepWeights& weights, const float* const* x, int64_t input,
                           int inputs, int part, __m256 (&acc)[R][4]) {
#pragma GCC unroll 4
  for (int i = 0; i < inputs; ++i) {
#pragma GCC unroll 2
    for (int r = 0; r < R; ++r) {
      acc[r][part] =
          _mm256_fmadd_ps(weights.input[i], _mm256_set1_ps(x[r][input + i]), acc[r][part]);
    }
  }
}

template <int R>
FULGUR_INLINE void Rescale(float ratio, __m256 (&acc)[R][4]) {
#pragma GCC unroll 2
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 4
    for (int part = 0; part < 4; ++part) {
      acc[r][part] = _mm256_mul_ps(acc[r][part], _mm256_set1_ps(ratio));
    }
  }
}

// y[r][32] of one panel. `scales`: of blocks of 128 inputs; null: none.
template <typename Words, int R>
void FloatTile(const std::byte* panel, int64_t in, const float* scales, const float* const* rows,
               float* y, int64_t ldy, int64_t channels) {
  __m256 acc[R][4];
  const float* x[R];
#pragma GCC unroll 2
  for (int r = 0; r < R; ++r) {
    acc[r][0] = acc[r][1] = acc[r][2] = acc[r][3] = _mm256_setzero_ps();
    x[r] = rows[r];
  }
  const int64_t steps = CeilDiv(in, kStepInputs);
  for (int64_t s = 0; s < steps; ++s) {
    if (scales != nullptr && s > 0 && s % kBlockSteps == 0) {
      Rescale<R>(scales[s / kBlockSteps - 1] / scales[s / kBlockSteps], acc);
    }
    const std::byte* step = panel + s * Words::kBytes;
#pragma GCC unroll 4
    for (int part = 0; part < 4; ++part) {
      AddStep<R>(Words::Load(step, part), x, s * kStepInputs, kStepInputs, part, acc);
    }
  }
  if (scales != nullptr) Rescale<R>(scales[CeilDiv(steps, kBlockSteps) - 1], acc);
#pragma GCC unroll 2
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 4
    for (int part = 0; part < 4; ++part) {
      if (channels > part * 8) {
        StoreLanes(y + r * ldy + part * 8, channels - part * 8, acc[r][part]);
      }
    }
  }
}

template <typename Words>
void FloatPanel(const std::byte* panel, int64_t in, const float* scales, const float* const* rows,
                int64_t num_rows, float* y, int64_t ldy, int64_t channels) {
  int64_t r = 0;
  for (; r + kRows <= num_rows; r += kRows) {
    FloatTile<Words, kRows>(panel, in, scales, rows + r, y + r * ldy, ldy, channels);
  }
  if (r < num_rows) {
    FloatTile<Words, 1>(panel, in, scales, rows + r, y + r * ldy, ldy, channels);
  }
}

// The rows of a set as fp32, padded with zeros to a multiple of 4.
struct FloatRows {
  const float* row[kMaxRows];
};

void WidenRows(const RowSet& x, int64_t in, FloatRows& rows) {
  const int64_t stride = RoundUp(in, 8);
  auto* out = reinterpret_cast<float*>(Scratch(ScratchUse::kWideRows, x.rows * stride * 4));
  for (int64_t r = 0; r < x.rows; ++r, out += stride) {
    for (int64_t i = 0; i < RoundUp(in, kStepInputs); ++i) {
      uint16_t half;
      __builtin_memcpy(&half, x.x[r] + i * 2, 2);
      const uint32_t bits = static_cast<uint32_t>(half) << 16;
      __builtin_memcpy(out + i, &bits, 4);
    }
    rows.row[r] = out;
  }
}

}  // namespace

// F32 panels hold exactly `in` inputs: the last ones are multiplied one by one.
void GemmF32(const PackedLinear& weight, int64_t block, const RowSet& x, float* y, int64_t ldy) {
  FloatRows rows;
  for (int64_t r = 0; r < x.rows; ++r) rows.row[r] = reinterpret_cast<const float*>(x.x[r]);
  const int64_t whole = weight.in / kStepInputs * kStepInputs;
  for (int64_t c = 0; c < 64 && block * 64 + c < weight.out; c += 32) {
    const int64_t channels = MinInt(32, weight.out - block * 64 - c);
    const std::byte* panel = Panel(weight, (block * 64 + c) / 32);
    FloatPanel<F32Words>(panel, whole, nullptr, rows.row, x.rows, y + c, ldy, channels);
    const auto* w = reinterpret_cast<const float*>(panel);
    for (int64_t r = 0; r < x.rows; ++r) {
      for (int64_t i = whole; i < weight.in; ++i) {
        for (int64_t k = 0; k < channels; ++k) {
          float& sum = y[r * ldy + c + k];
          sum = __builtin_fmaf(w[i * 32 + k], rows.row[r][i], sum);
        }
      }
    }
  }
}

void GemmBf16(const PackedLinear& weight, int64_t block, const RowSet& x, float* y, int64_t ldy) {
  FloatRows rows;
  WidenRows(x, weight.in, rows);
  for (int64_t c = 0; c < 64 && block * 64 + c < weight.out; c += 32) {
    const int64_t channels = MinInt(32, weight.out - block * 64 - c);
    const std::byte* panel = Panel(weight, (block * 64 + c) / 32);
    if (weight.format == WeightFormat::kBf16) {
      FloatPanel<Bf16Words>(panel, weight.in, nullptr, rows.row, x.rows, y + c, ldy, channels);
    } else {
      FloatPanel<Fp8Words>(panel, weight.in, PanelScales(weight, panel), rows.row, x.rows, y + c,
                           ldy, channels);
    }
  }
}

}  // namespace fulgur::kernels::avx2

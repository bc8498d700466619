// The byte layout of packed weights: what packing.cc writes and every kernel reads.
//
// Channels lie in panels, one after the other; a panel holds all inputs of its channels as one
// sequential stream of 64-byte words, and its scales at the end. A word holds 16 channels (a
// "group"). Missing channels and inputs are padded with zeros.
//
//   kF32       32 channels; per input: [32] fp32
//   kBf16      32 channels; per 4 inputs: [2 groups][2 pairs][16 channels][2 inputs] bf16
//   kFp8Block  32 channels; per 4 inputs: [2 groups] words, in which byte 16 L + 8 p + 2 j + t is
//              channel 4 L + j, input 2 p + t; then fp32 scales of the blocks of 128 inputs
//   kInt8      64 channels; per 4 inputs: [4 groups][16 channels][4 inputs] of weight + 128; then
//              [64] fp32 scales
//   kInt4      32 channels; per 64 inputs: [2 groups][8 words][16 channels][4 bytes], low nibble of
//              byte j = input 8 word + j, high nibble = input 8 word + 4 + j; then [32] fp32 scales
//   kFp4       as kInt4, and behind each unit of 64 inputs its scale bytes [2 blocks of 32
//              inputs][32 channels]; after [32] fp32 scales one bit per unit: has planes above 0
//
// FP4 scales are powers of two. Relative to the largest of its channel, a block's scale is
// 2^-(4 plane + 3 - shift), shift 0..3, and 2 E2M1 2^shift is an integer of at most 96: products
// are integers for each plane, and one fp32 scale per channel comes last. Scale byte: shift << 4 |
// plane << 6. Blocks more than 15 powers below the largest of their channel become zero.
#pragma once

#include <cstdint>

#include "kernels/linear.h"

namespace fulgur::kernels {

inline constexpr int64_t kGroupChannels = 16;
inline constexpr int64_t kStepInputs = 4;      // kBf16, kFp8Block, kInt8
inline constexpr int64_t kUnitInputs = 64;     // kInt4, kFp4
inline constexpr int64_t kFp8BlockSize = 128;  // inputs and channels of one scale
inline constexpr int64_t kFp4BlockInputs = 32;
inline constexpr int64_t kNibbleUnitBytes = 1024;
inline constexpr int64_t kFp4UnitBytes = kNibbleUnitBytes + 64;
inline constexpr int kFp4Planes = 4;
// Work is split in blocks of this many channels: a whole number of panels of every format.
inline constexpr int64_t kBlockChannels = 64;

constexpr int64_t CeilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }
constexpr int64_t RoundUp(int64_t a, int64_t b) { return CeilDiv(a, b) * b; }

constexpr int64_t PanelChannels(WeightFormat format) {
  return format == WeightFormat::kInt8 ? 64 : 32;
}

// Inputs that a kernel reads, padding included; rows of x must be that long or are copied.
constexpr int64_t PaddedInputs(WeightFormat format, int64_t in) {
  switch (format) {
    case WeightFormat::kF32:
      return in;
    case WeightFormat::kBf16:
    case WeightFormat::kFp8Block:
    case WeightFormat::kInt8:
      return RoundUp(in, kStepInputs);
    case WeightFormat::kInt4:
    case WeightFormat::kFp4:
      return RoundUp(in, kUnitInputs);
  }
  return in;
}

// Bytes of a panel's weights: the offset of its scales.
constexpr int64_t PanelWeightBytes(WeightFormat format, int64_t in) {
  const int64_t padded = PaddedInputs(format, in);
  switch (format) {
    case WeightFormat::kF32:
      return padded * 32 * 4;
    case WeightFormat::kBf16:
      return padded * 32 * 2;
    case WeightFormat::kFp8Block:
      return padded * 32;
    case WeightFormat::kInt8:
      return padded * 64;
    case WeightFormat::kInt4:
      return padded / kUnitInputs * kNibbleUnitBytes;
    case WeightFormat::kFp4:
      return padded / kUnitInputs * kFp4UnitBytes;
  }
  return 0;
}

constexpr int64_t PanelScaleBytes(WeightFormat format, int64_t in) {
  switch (format) {
    case WeightFormat::kF32:
    case WeightFormat::kBf16:
      return 0;
    case WeightFormat::kFp8Block:
      return RoundUp(CeilDiv(in, kFp8BlockSize) * 4, 64);
    case WeightFormat::kInt8:
      return 64 * 4;
    case WeightFormat::kInt4:
      return 32 * 4;
    case WeightFormat::kFp4:
      return 32 * 4 + RoundUp(CeilDiv(CeilDiv(in, kUnitInputs), 8), 64);
  }
  return 0;
}

constexpr int64_t PanelBytes(WeightFormat format, int64_t in) {
  return PanelWeightBytes(format, in) + PanelScaleBytes(format, in);
}

inline const std::byte* Panel(const PackedLinear& weight, int64_t panel) {
  return weight.bytes.data() + panel * PanelBytes(weight.format, weight.in);
}

// The scales of a panel: per channel, or per 128 inputs (kFp8Block).
inline const float* PanelScales(const PackedLinear& weight, const std::byte* panel) {
  return reinterpret_cast<const float*>(panel + PanelWeightBytes(weight.format, weight.in));
}

// kF32: the weights of input `i` for the 32 channels of a panel.
inline const float* PanelF32(const PackedLinear& weight, int64_t panel, int64_t i) {
  return reinterpret_cast<const float*>(Panel(weight, panel)) + i * 32;
}

// kFp4: whether a unit of 64 inputs has blocks in planes above 0.
inline bool UnitHasPlanes(const std::byte* unit_bits, int64_t unit) {
  return ((static_cast<unsigned>(unit_bits[unit / 8]) >> (unit % 8)) & 1U) != 0;
}

inline const std::byte* PanelUnitBits(const PackedLinear& weight, const std::byte* panel) {
  return panel + PanelWeightBytes(weight.format, weight.in) + 32 * 4;
}

// Whether a panel is FP4 and has any block in a plane above 0. In packing.cc.
bool AnyPlanes(const PackedLinear& weight, const std::byte* panel);

}  // namespace fulgur::kernels

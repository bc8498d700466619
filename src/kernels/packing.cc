#include "kernels/packing.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <vector>

#include "base/check.h"
#include "kernels/packed_layout.h"

namespace fulgur::kernels {
namespace {

using tensor::DType;

// int32 accumulators hold 255 * 127 (int8) or 224 * 127 (FP4) per input.
constexpr int64_t kMaxIntegerInputs = 65536;

template <typename T>
T Load(const std::byte* bytes) {
  T value;
  std::memcpy(&value, bytes, sizeof(T));
  return value;
}

// The bytes [at, at + 4) of a row of `size` bytes, zeros behind its end.
uint32_t LoadPadded(const std::byte* row, int64_t at, int64_t size) {
  if (at + 4 <= size) return Load<uint32_t>(row + at);
  uint32_t value = 0;
  if (at < size) std::memcpy(&value, row + at, static_cast<size_t>(size - at));
  return value;
}

void Store(std::byte* out, uint32_t value) { std::memcpy(out, &value, sizeof(value)); }

float LoadFloat(const std::byte* bytes, DType type, int64_t index) {
  switch (type) {
    case DType::kF32:
      return Load<float>(bytes + 4 * index);
    case DType::kBf16:
      return tensor::ToFloat(tensor::BFloat16{Load<uint16_t>(bytes + 2 * index)});
    case DType::kF16:
      return tensor::HalfToFloat(Load<uint16_t>(bytes + 2 * index));
    case DType::kF8E8M0:
      return tensor::E8M0ToFloat(Load<uint8_t>(bytes + index));
    case DType::kF8E4M3:
      return tensor::E4M3ToFloat(Load<uint8_t>(bytes + index));
    default:
      CHECK(false);
  }
}

float Fp8Scale(const LinearSource& source, int64_t row, int64_t block) {
  const int64_t blocks = CeilDiv(source.in, kFp8BlockSize);
  return LoadFloat(source.scale, source.scale_type, row / kFp8BlockSize * blocks + block);
}

int8_t SignExtendNibble(unsigned code) {
  return static_cast<int8_t>(static_cast<int>(code & 15U) - ((code & 8U) != 0 ? 16 : 0));
}

unsigned Int4Code(const LinearSource& source, int64_t row, int64_t i) {
  const auto byte = Load<uint8_t>(source.weight + row / 2 * source.in + i);
  return row % 2 == 0 ? byte & 15U : byte >> 4;
}

unsigned Fp4Code(const LinearSource& source, int64_t row, int64_t i) {
  const auto byte = Load<uint8_t>(source.weight + row * (source.in / 2) + i / 2);
  return i % 2 == 0 ? byte & 15U : byte >> 4;
}

uint8_t Fp4ScaleCode(const LinearSource& source, int64_t row, int64_t block) {
  return Load<uint8_t>(source.scale + row * (source.in / kFp4BlockInputs) + block);
}

// ---- kF32 and kBf16 ----

void PackPanelF32(const LinearSource& source, int64_t first_row, std::byte* panel) {
  std::vector<float> values(static_cast<size_t>(source.in));
  auto* out = reinterpret_cast<float*>(panel);
  for (int64_t c = 0; c < 32 && first_row + c < source.out; ++c) {
    DequantizeRow(source, first_row + c, values.data());
    for (int64_t i = 0; i < source.in; ++i) out[i * 32 + c] = values[static_cast<size_t>(i)];
  }
}

// A row of bf16 values, two at a time: where they lie in the panel follows from the pair.
void PackBf16Row(const std::byte* row, int64_t in, int64_t c, std::byte* panel) {
  std::byte* out = panel + c / 16 * 128 + c % 16 * 4;
  for (int64_t i = 0; i < in; i += 2) {
    Store(out + i / 4 * 256 + i % 4 / 2 * 64, LoadPadded(row, 2 * i, 2 * in));
  }
}

void PackPanelBf16(const LinearSource& source, int64_t first_row, std::byte* panel) {
  std::vector<float> values;
  std::vector<tensor::BFloat16> rounded(static_cast<size_t>(source.in));
  const bool stored = source.weight_type == DType::kBf16;
  for (int64_t c = 0; c < 32 && first_row + c < source.out; ++c) {
    if (stored) {
      PackBf16Row(source.weight + (first_row + c) * source.in * 2, source.in, c, panel);
      continue;
    }
    values.resize(static_cast<size_t>(source.in));
    DequantizeRow(source, first_row + c, values.data());
    std::transform(values.begin(), values.end(), rounded.begin(), tensor::ToBFloat16);
    PackBf16Row(reinterpret_cast<const std::byte*>(rounded.data()), source.in, c, panel);
  }
}

// ---- kFp8Block ----

// A block of zeros takes the scale before it: kernels rescale by ratios of neighbouring scales.
void PackFp8Scales(const LinearSource& source, int64_t first_row, std::byte* panel) {
  auto* scales =
      reinterpret_cast<float*>(panel + PanelWeightBytes(WeightFormat::kFp8Block, source.in));
  const int64_t words = PaddedInputs(WeightFormat::kFp8Block, source.in) * 32 / 64;
  constexpr int64_t kBlockWords = kFp8BlockSize * 32 / 64;
  float last = 1.0F;
  for (int64_t block = 0; block < CeilDiv(source.in, kFp8BlockSize); ++block) {
    std::byte* begin = panel + block * kBlockWords * 64;
    std::byte* end = panel + std::min((block + 1) * kBlockWords, words) * 64;
    const float scale = Fp8Scale(source, first_row, block);
    if (scale == 0.0F) std::fill(begin, end, std::byte{0});
    const bool all_zero = std::all_of(
        begin, end, [](std::byte code) { return (code & std::byte{0x7f}) == std::byte{0}; });
    if (!all_zero) last = scale;
    scales[block] = last;
  }
}

void PackPanelFp8(const LinearSource& source, int64_t first_row, std::byte* panel) {
  for (int64_t c = 0; c < 32 && first_row + c < source.out; ++c) {
    const std::byte* row = source.weight + (first_row + c) * source.in;
    std::byte* out = panel + c / 16 * 64 + c % 16 / 4 * 16 + c % 4 * 2;
    for (int64_t i = 0; i < source.in; i += kStepInputs) {
      const uint32_t codes = LoadPadded(row, i, source.in);
      std::memcpy(out + i / 4 * 128, &codes, 2);
      const uint32_t second_pair = codes >> 16;
      std::memcpy(out + i / 4 * 128 + 8, &second_pair, 2);
    }
  }
  PackFp8Scales(source, first_row, panel);
}

// ---- kInt8 and kInt4 ----

void PackPanelInt8(const LinearSource& source, int64_t first_row, std::byte* panel) {
  const int64_t bytes = PanelWeightBytes(WeightFormat::kInt8, source.in);
  std::memset(panel, 128, static_cast<size_t>(bytes));
  auto* scales = reinterpret_cast<float*>(panel + bytes);
  for (int64_t c = 0; c < 64 && first_row + c < source.out; ++c) {
    const std::byte* row = source.weight + (first_row + c) * source.in;
    std::byte* out = panel + c * 4;
    for (int64_t i = 0; i < source.in; i += kStepInputs) {
      Store(out + i * 64, LoadPadded(row, i, source.in) ^ 0x80808080U);
    }
    scales[c] = LoadFloat(source.scale, source.scale_type, first_row + c);
  }
}

// Offset inside a panel's unit of the byte with inputs 8 word + j (low) and 8 word + 4 + j (high).
int64_t NibbleOffset(int64_t c, int64_t word) { return c / 16 * 512 + word * 64 + c % 16 * 4; }

void PackPanelInt4(const LinearSource& source, int64_t first_row, std::byte* panel) {
  auto* scales = reinterpret_cast<float*>(panel + PanelWeightBytes(WeightFormat::kInt4, source.in));
  for (int64_t c = 0; c < 32 && first_row + c < source.out; ++c) {
    const std::byte* row = source.weight + (first_row + c) / 2 * source.in;
    const int half = (first_row + c) % 2 == 0 ? 0 : 4;
    const auto codes = [&](int64_t i) {  // of four inputs, one in the low half of each byte
      return (LoadPadded(row, i, source.in) >> half) & 0x0f0f0f0fU;
    };
    for (int64_t i = 0; i < source.in; i += 8) {
      std::byte* unit = panel + i / kUnitInputs * kNibbleUnitBytes;
      Store(unit + NibbleOffset(c, i % kUnitInputs / 8), codes(i) | codes(i + 4) << 4);
    }
    scales[c] = LoadFloat(source.scale, source.scale_type, first_row + c);
  }
}

// ---- kFp4 ----

bool BlockIsZero(const std::byte* codes) {  // plus and minus zero
  constexpr uint64_t kMagnitudes = 0x7777777777777777U;
  return ((Load<uint64_t>(codes) | Load<uint64_t>(codes + 8)) & kMagnitudes) == 0;
}

// The largest scale code of a row's blocks that hold anything but zeros; -1 if there is none.
int LargestScaleCode(const LinearSource& source, int64_t row) {
  const std::byte* codes = source.weight + row * (source.in / 2);
  int largest = -1;
  for (int64_t block = 0; block < source.in / kFp4BlockInputs; ++block) {
    const int code = Fp4ScaleCode(source, row, block);
    if (code > largest && !BlockIsZero(codes + block * (kFp4BlockInputs / 2))) largest = code;
  }
  return largest;
}

// Eight inputs of a row (4 bytes, two per byte) to 4 bytes of input j and input 4 + j.
uint32_t RegroupNibbles(uint32_t source) {
  const auto spread = [](uint32_t half) {
    const uint32_t wide = (half & 0xffU) | ((half & 0xff00U) << 8);
    return (wide | (wide << 4)) & 0x0f0f0f0fU;
  };
  return spread(source & 0xffffU) | (spread(source >> 16) << 4);
}

void PackFp4Block(const std::byte* codes, int64_t c, int64_t block_in_unit, std::byte* unit) {
  for (int64_t word = 0; word < 4; ++word) {
    const uint32_t regrouped = RegroupNibbles(Load<uint32_t>(codes + 4 * word));
    std::memcpy(unit + NibbleOffset(c, block_in_unit * 4 + word), &regrouped, 4);
  }
}

void PackFp4Row(const LinearSource& source, int64_t row, int64_t c, std::byte* panel) {
  const std::byte* codes = source.weight + row * (source.in / 2);
  std::byte* tail = panel + PanelWeightBytes(WeightFormat::kFp4, source.in);
  auto* scales = reinterpret_cast<float*>(tail);
  std::byte* unit_bits = tail + 32 * 4;
  const int largest = LargestScaleCode(source, row);
  for (int64_t block = 0; block < source.in / kFp4BlockInputs; ++block, codes += 16) {
    const int below = largest - Fp4ScaleCode(source, row, block);
    if (below < 0 || below >= 4 * kFp4Planes) continue;  // a block of zeros, or too small to count
    const int shift = 3 - below % 4;
    const int plane = below / 4;
    std::byte* unit = panel + block / 2 * kFp4UnitBytes;
    PackFp4Block(codes, c, block % 2, unit);
    unit[kNibbleUnitBytes + block % 2 * 32 + c] = static_cast<std::byte>(shift << 4 | plane << 6);
    if (plane > 0) unit_bits[block / 2 / 8] |= static_cast<std::byte>(1 << (block / 2 % 8));
  }
  // 2 E2M1 2^3 for the largest blocks: four powers of two to take back.
  scales[c] = largest < 0 ? 0.0F : tensor::E8M0ToFloat(static_cast<uint8_t>(largest)) * 0x1p-4F;
}

void PackPanelFp4(const LinearSource& source, int64_t first_row, std::byte* panel) {
  for (int64_t c = 0; c < 32 && first_row + c < source.out; ++c) {
    PackFp4Row(source, first_row + c, c, panel);
  }
}

void PackPanel(const LinearSource& source, WeightFormat target, int64_t first_row,
               std::byte* panel) {
  switch (target) {
    case WeightFormat::kF32:
      return PackPanelF32(source, first_row, panel);
    case WeightFormat::kBf16:
      return PackPanelBf16(source, first_row, panel);
    case WeightFormat::kFp8Block:
      return PackPanelFp8(source, first_row, panel);
    case WeightFormat::kInt8:
      return PackPanelInt8(source, first_row, panel);
    case WeightFormat::kInt4:
      return PackPanelInt4(source, first_row, panel);
    case WeightFormat::kFp4:
      return PackPanelFp4(source, first_row, panel);
  }
}

}  // namespace

void DequantizeRow(const LinearSource& source, int64_t row, float* values) {
  for (int64_t i = 0; i < source.in; ++i) {
    switch (source.format) {
      case WeightFormat::kF32:
      case WeightFormat::kBf16:
        values[i] = LoadFloat(source.weight, source.weight_type, row * source.in + i);
        break;
      case WeightFormat::kFp8Block:
        values[i] = tensor::E4M3ToFloat(Load<uint8_t>(source.weight + row * source.in + i)) *
                    Fp8Scale(source, row, i / kFp8BlockSize);
        break;
      case WeightFormat::kInt8:
        values[i] = static_cast<float>(Load<int8_t>(source.weight + row * source.in + i)) *
                    LoadFloat(source.scale, source.scale_type, row);
        break;
      case WeightFormat::kInt4:
        values[i] = static_cast<float>(SignExtendNibble(Int4Code(source, row, i))) *
                    LoadFloat(source.scale, source.scale_type, row);
        break;
      case WeightFormat::kFp4:
        values[i] = tensor::E2M1ToFloat(static_cast<uint8_t>(Fp4Code(source, row, i))) *
                    tensor::E8M0ToFloat(Fp4ScaleCode(source, row, i / kFp4BlockInputs));
        break;
    }
  }
}

int64_t PackedBytes(const LinearSource& source, WeightFormat target) {
  return CeilDiv(source.out, PanelChannels(target)) * PanelBytes(target, source.in);
}

void Pack(const LinearSource& source, WeightFormat target, std::span<std::byte> packed,
          const base::WorkerRank& worker) {
  CHECK(target == source.format || target == WeightFormat::kF32 || target == WeightFormat::kBf16);
  CHECK_EQ(static_cast<int64_t>(packed.size()), PackedBytes(source, target));
  if (ActivationOf(target) == ActivationFormat::kInt8) CHECK_LE(source.in, kMaxIntegerInputs);
  const int64_t channels = PanelChannels(target);
  const int64_t bytes = PanelBytes(target, source.in);
  const auto [begin, end] = worker.Share(CeilDiv(source.out, channels));
  for (int64_t panel = begin; panel < end; ++panel) {
    std::byte* out = packed.data() + panel * bytes;
    std::memset(out, 0, static_cast<size_t>(bytes));
    PackPanel(source, target, panel * channels, out);
  }
}

bool AnyPlanes(const PackedLinear& weight, const std::byte* panel) {
  if (weight.format != WeightFormat::kFp4) return false;
  const std::byte* bits = PanelUnitBits(weight, panel);
  const int64_t bytes = CeilDiv(CeilDiv(weight.in, kUnitInputs), 8);
  return std::any_of(bits, bits + bytes, [](std::byte b) { return b != std::byte{0}; });
}

}  // namespace fulgur::kernels

#include "kernels/scalar/product.h"

#include <algorithm>

#include "base/check.h"
#include "kernels/packed_layout.h"

namespace fulgur::kernels::scalar {
namespace {

constexpr int64_t kSlabInputs = 64;
constexpr int64_t kMaxPanel = 64;
static_assert(kFp8BlockSize % kSlabInputs == 0 && kUnitInputs == kSlabInputs);

// The weights of up to 64 inputs of a panel, in input-major order. Integer formats: without scales.
template <typename Value>
struct Slab {
  Value w[kSlabInputs][kMaxPanel];
};

uint8_t Byte(const std::byte* bytes, int64_t offset) { return static_cast<uint8_t>(bytes[offset]); }

void DecodeF32(const std::byte* panel, int64_t i0, int64_t n, Slab<double>& slab) {
  const auto* w = reinterpret_cast<const float*>(panel) + i0 * 32;
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t c = 0; c < 32; ++c) slab.w[i][c] = w[i * 32 + c];
  }
}

void DecodeBf16(const std::byte* panel, int64_t i0, int64_t n, Slab<double>& slab) {
  const auto* w = reinterpret_cast<const tensor::BFloat16*>(panel);
  for (int64_t i = i0; i < i0 + n; ++i) {
    for (int64_t c = 0; c < 32; ++c) {
      slab.w[i - i0][c] =
          tensor::ToFloat(w[i / 4 * 128 + c / 16 * 64 + i % 4 / 2 * 32 + c % 16 * 2 + i % 2]);
    }
  }
}

void DecodeFp8(const std::byte* panel, float scale, int64_t i0, int64_t n, Slab<double>& slab) {
  for (int64_t i = i0; i < i0 + n; ++i) {
    for (int64_t c = 0; c < 32; ++c) {
      const uint8_t code = Byte(
          panel, i / 4 * 128 + c / 16 * 64 + c % 16 / 4 * 16 + i % 4 / 2 * 8 + c % 4 * 2 + i % 2);
      slab.w[i - i0][c] = static_cast<double>(tensor::E4M3ToFloat(code)) * scale;
    }
  }
}

void DecodeInt8(const std::byte* panel, int64_t i0, int64_t n, Slab<int32_t>& slab) {
  for (int64_t i = i0; i < i0 + n; ++i) {
    for (int64_t c = 0; c < 64; ++c) {
      slab.w[i - i0][c] = Byte(panel, i / 4 * 256 + c * 4 + i % 4) - 128;
    }
  }
}

unsigned NibbleAt(const std::byte* unit, int64_t c, int64_t i) {
  const uint8_t byte = Byte(unit, c / 16 * 512 + i / 8 * 64 + c % 16 * 4 + i % 4);
  return i % 8 < 4 ? byte & 15U : byte >> 4;
}

void DecodeInt4(const std::byte* panel, int64_t i0, Slab<int32_t>& slab) {
  const std::byte* unit = panel + i0 / kUnitInputs * kNibbleUnitBytes;
  for (int64_t i = 0; i < kUnitInputs; ++i) {
    for (int64_t c = 0; c < 32; ++c) {
      const auto code = static_cast<int32_t>(NibbleAt(unit, c, i));
      slab.w[i][c] = code < 8 ? code : code - 16;
    }
  }
}

// Blocks of other planes count as zeros.
void DecodeFp4(const std::byte* panel, int plane, int64_t i0, Slab<int32_t>& slab) {
  const std::byte* unit = panel + i0 / kUnitInputs * kFp4UnitBytes;
  for (int64_t i = 0; i < kUnitInputs; ++i) {
    for (int64_t c = 0; c < 32; ++c) {
      const int scale = Byte(unit, kNibbleUnitBytes + i / kFp4BlockInputs * 32 + c);
      const int value = tensor::TwiceE2M1(static_cast<uint8_t>(NibbleAt(unit, c, i)));
      slab.w[i][c] = scale >> 6 == plane ? value * (1 << (scale >> 4 & 3)) : 0;
    }
  }
}

template <typename X, typename Value>
void Accumulate(const Slab<Value>& slab, const X* x, int64_t n, int64_t channels, Value* acc) {
  for (int64_t i = 0; i < n; ++i) {
    const auto xi = static_cast<Value>(x[i]);
    for (int64_t c = 0; c < channels; ++c) acc[c] += slab.w[i][c] * xi;
  }
}

void Decode(const PackedLinear& weight, const std::byte* panel, int /*plane*/, int64_t i0,
            int64_t n, Slab<double>& slab) {
  switch (weight.format) {
    case WeightFormat::kF32:
      return DecodeF32(panel, i0, n, slab);
    case WeightFormat::kBf16:
      return DecodeBf16(panel, i0, n, slab);
    case WeightFormat::kFp8Block:
      return DecodeFp8(panel, PanelScales(weight, panel)[i0 / kFp8BlockSize], i0, n, slab);
    default:
      CHECK(false);
  }
}

void Decode(const PackedLinear& weight, const std::byte* panel, int plane, int64_t i0, int64_t n,
            Slab<int32_t>& slab) {
  switch (weight.format) {
    case WeightFormat::kInt8:
      return DecodeInt8(panel, i0, n, slab);
    case WeightFormat::kInt4:
      return DecodeInt4(panel, i0, slab);
    case WeightFormat::kFp4:
      return DecodeFp4(panel, plane, i0, slab);
    default:
      CHECK(false);
  }
}

// acc[r][c] of one plane over all inputs. `load(row, i0, n, values)` fetches activations.
template <typename Value, typename LoadRow>
void Sum(const PackedLinear& weight, const std::byte* panel, int plane, int64_t num_rows,
         const LoadRow& load, Value (*acc)[kMaxPanel]) {
  Slab<Value> slab;
  Value values[kSlabInputs];
  for (int64_t i0 = 0; i0 < weight.in; i0 += kSlabInputs) {
    const int64_t n = std::min(kSlabInputs, weight.in - i0);
    Decode(weight, panel, plane, i0, n, slab);
    for (int64_t r = 0; r < num_rows; ++r) {
      load(r, i0, n, values);
      Accumulate(slab, values, n, PanelChannels(weight.format), acc[r]);
    }
  }
}

float BFloatOrFloat(float value) { return value; }
float BFloatOrFloat(tensor::BFloat16 value) { return tensor::ToFloat(value); }

template <typename X>
void RealProduct(const PackedLinear& weight, const std::byte* panel, const X* x, int64_t x_stride,
                 std::span<const int32_t> rows, float* out) {
  const auto num_rows = static_cast<int64_t>(rows.size());
  double acc[kMaxProductRows][kMaxPanel] = {};
  const auto load = [&](int64_t r, int64_t i0, int64_t n, double* values) {
    const X* row = x + rows[static_cast<size_t>(r)] * x_stride + i0;
    for (int64_t i = 0; i < n; ++i) values[i] = BFloatOrFloat(row[i]);
  };
  Sum<double>(weight, panel, 0, num_rows, load, acc);
  for (int64_t r = 0; r < num_rows; ++r) {
    for (int64_t c = 0; c < 32; ++c) out[r * kBlockChannels + c] = static_cast<float>(acc[r][c]);
  }
}

bool AnyPlanes(const PackedLinear& weight, const std::byte* panel) {
  if (weight.format != WeightFormat::kFp4) return false;
  const std::byte* bits = PanelUnitBits(weight, panel);
  const int64_t bytes = CeilDiv(CeilDiv(weight.in, kUnitInputs), 8);
  return std::any_of(bits, bits + bytes, [](std::byte b) { return b != std::byte{0}; });
}

// Each plane is an exact int32; planes are added in fp32 in ascending order, the channel's scale
// and then the row's come last. Other tables do exactly the same.
void IntegerProduct(const PackedLinear& weight, const std::byte* panel, const ActivationRows& x,
                    std::span<const int32_t> rows, float* out) {
  const auto num_rows = static_cast<int64_t>(rows.size());
  const int64_t channels = PanelChannels(weight.format);
  const auto load = [&](int64_t r, int64_t i0, int64_t n, int32_t* values) {
    const int8_t* row = x.int8 + rows[static_cast<size_t>(r)] * x.cols + i0;
    std::copy(row, row + n, values);
  };
  float total[kMaxProductRows][kMaxPanel] = {};
  const int planes = AnyPlanes(weight, panel) ? kFp4Planes : 1;
  float plane_scale = 1.0F;
  for (int plane = 0; plane < planes; ++plane, plane_scale /= 16.0F) {
    int32_t acc[kMaxProductRows][kMaxPanel] = {};
    Sum<int32_t>(weight, panel, plane, num_rows, load, acc);
    for (int64_t r = 0; r < num_rows; ++r) {
      for (int64_t c = 0; c < channels; ++c) {
        total[r][c] += static_cast<float>(acc[r][c]) * plane_scale;
      }
    }
  }
  const float* scales = PanelScales(weight, panel);
  for (int64_t r = 0; r < num_rows; ++r) {
    const float row_scale = x.int8_scale[rows[static_cast<size_t>(r)]];
    for (int64_t c = 0; c < channels; ++c) {
      out[r * kBlockChannels + c] = total[r][c] * scales[c] * row_scale;
    }
  }
}

void PanelProduct(const PackedLinear& weight, const std::byte* panel, const ActivationRows& x,
                  int64_t x_stride, std::span<const int32_t> rows, float* out) {
  const int64_t stride = x_stride != 0 ? x_stride : x.cols;
  switch (ActivationOf(weight.format)) {
    case ActivationFormat::kF32:
      CHECK(x.f32 != nullptr);
      return RealProduct(weight, panel, x.f32, stride, rows, out);
    case ActivationFormat::kBf16:
      CHECK(x.bf16 != nullptr);
      return RealProduct(weight, panel, x.bf16, stride, rows, out);
    case ActivationFormat::kInt8:
      CHECK(x.int8 != nullptr && x_stride == 0);
      return IntegerProduct(weight, panel, x, rows, out);
  }
}

}  // namespace

void BlockProduct(const PackedLinear& weight, int64_t block, const ActivationRows& x,
                  int64_t x_stride, std::span<const int32_t> rows, float* out) {
  CHECK_LE(static_cast<int64_t>(rows.size()), kMaxProductRows);
  CHECK_EQ(x.cols, weight.in);
  const int64_t channels = PanelChannels(weight.format);
  const int64_t first = block * kBlockChannels;
  const int64_t end = std::min(first + kBlockChannels, weight.out);
  for (int64_t c = first; c < end; c += channels) {
    PanelProduct(weight, Panel(weight, c / channels), x, x_stride, rows, out + c - first);
  }
}

}  // namespace fulgur::kernels::scalar

#include "kernels/scalar/product.h"

#include <algorithm>
#include <array>
#include <iterator>

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

// Weights are read in the order in which they lie in memory.

void DecodeF32(const std::byte* panel, int64_t i0, int64_t n, Slab<double>& slab) {
  const auto* w = reinterpret_cast<const float*>(panel) + i0 * 32;
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t c = 0; c < 32; ++c) slab.w[i][c] = *w++;
  }
}

void DecodeBf16(const std::byte* panel, int64_t i0, int64_t n, Slab<double>& slab) {
  const auto* w = reinterpret_cast<const tensor::BFloat16*>(panel) + i0 * 32;
  for (int64_t i = 0; i < n; i += kStepInputs) {
    for (int64_t group = 0; group < 32; group += kGroupChannels) {
      for (int64_t pair = i; pair < i + kStepInputs; pair += 2) {
        for (int64_t c = group; c < group + kGroupChannels; ++c) {
          slab.w[pair][c] = tensor::ToFloat(*w++);
          slab.w[pair + 1][c] = tensor::ToFloat(*w++);
        }
      }
    }
  }
}

std::array<float, 256> MakeE4M3Values() {
  std::array<float, 256> values{};
  for (size_t code = 0; code < values.size(); ++code) {
    values[code] = tensor::E4M3ToFloat(static_cast<uint8_t>(code));
  }
  return values;
}

void DecodeFp8(const std::byte* panel, float scale, int64_t i0, int64_t n, Slab<double>& slab) {
  static const std::array<float, 256> kValues = MakeE4M3Values();
  const auto* w = reinterpret_cast<const uint8_t*>(panel) + i0 * 32;
  const auto next = [&w, scale] {
    return static_cast<double>(kValues[*w++]) * static_cast<double>(scale);
  };
  for (int64_t i = 0; i < n; i += kStepInputs) {
    for (int64_t lane = 0; lane < 32; lane += 4) {
      for (int64_t pair = i; pair < i + kStepInputs; pair += 2) {
        for (int64_t c = lane; c < lane + 4; ++c) {
          slab.w[pair][c] = next();
          slab.w[pair + 1][c] = next();
        }
      }
    }
  }
}

void DecodeInt8(const std::byte* panel, int64_t i0, int64_t n, Slab<int32_t>& slab) {
  const auto* w = reinterpret_cast<const uint8_t*>(panel) + i0 * 64;
  for (int64_t i = 0; i < n; i += kStepInputs) {
    for (int64_t c = 0; c < 64; ++c) {
      for (int64_t t = 0; t < kStepInputs; ++t) slab.w[i + t][c] = *w++ - 128;
    }
  }
}

// Calls store(input in unit, channel, code) for the 64 x 32 codes of a unit.
template <typename Store>
void ForEachNibble(const std::byte* unit, Store store) {
  const auto* w = reinterpret_cast<const uint8_t*>(unit);
  for (int64_t group = 0; group < 32; group += kGroupChannels) {
    for (int64_t i = 0; i < kUnitInputs; i += 8) {
      for (int64_t c = group; c < group + kGroupChannels; ++c) {
        for (int64_t t = 0; t < 4; ++t, ++w) {
          store(i + t, c, *w & 15);
          store(i + 4 + t, c, *w >> 4);
        }
      }
    }
  }
}

void DecodeInt4(const std::byte* panel, int64_t i0, Slab<int32_t>& slab) {
  ForEachNibble(
      panel + i0 / kUnitInputs * kNibbleUnitBytes,
      [&slab](int64_t i, int64_t c, int code) { slab.w[i][c] = code < 8 ? code : code - 16; });
}

// Blocks of other planes count as zeros.
void DecodeFp4(const std::byte* panel, int plane, int64_t i0, Slab<int32_t>& slab) {
  const std::byte* unit = panel + i0 / kUnitInputs * kFp4UnitBytes;
  const auto* scales = reinterpret_cast<const uint8_t*>(unit) + kNibbleUnitBytes;
  int32_t factors[kUnitInputs / kFp4BlockInputs * 32];
  for (size_t i = 0; i < std::size(factors); ++i) {
    factors[i] = scales[i] >> 6 == plane ? 1 << (scales[i] >> 4 & 3) : 0;
  }
  ForEachNibble(unit, [&slab, &factors](int64_t i, int64_t c, int code) {
    slab.w[i][c] =
        tensor::TwiceE2M1(static_cast<uint8_t>(code)) * factors[i / kFp4BlockInputs * 32 + c];
  });
}

template <typename Value>
using AccumulateFn = void (*)(const Slab<Value>&, const Value*, int64_t, int64_t, Value*);

template <typename Value>
inline __attribute__((always_inline)) void AccumulateLoop(const Slab<Value>& slab, const Value* x,
                                                          int64_t n, int64_t channels, Value* acc) {
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t c = 0; c < channels; ++c) acc[c] += slab.w[i][c] * x[i];
  }
}

template <typename Value>
void AccumulateBaseline(const Slab<Value>& slab, const Value* x, int64_t n, int64_t channels,
                        Value* acc) {
  AccumulateLoop(slab, x, n, channels, acc);
}

#if defined(__x86_64__)
// The same loop for the wider registers of AVX2, with the same results: nothing is contracted.
template <typename Value>
__attribute__((target("avx2"))) void AccumulateAvx2(const Slab<Value>& slab, const Value* x,
                                                    int64_t n, int64_t channels, Value* acc) {
  AccumulateLoop(slab, x, n, channels, acc);
}
#endif

// acc[c] += sum_i w[i][c] x[i].
template <typename Value>
AccumulateFn<Value> ChooseAccumulate() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2")) return AccumulateAvx2<Value>;
#endif
  return AccumulateBaseline<Value>;
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
  static const AccumulateFn<Value> kAccumulate = ChooseAccumulate<Value>();
  Slab<Value> slab;
  Value values[kSlabInputs];
  for (int64_t i0 = 0; i0 < weight.in; i0 += kSlabInputs) {
    const int64_t n = std::min(kSlabInputs, weight.in - i0);
    Decode(weight, panel, plane, i0, n, slab);
    for (int64_t r = 0; r < num_rows; ++r) {
      load(r, i0, n, values);
      kAccumulate(slab, values, n, PanelChannels(weight.format), acc[r]);
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

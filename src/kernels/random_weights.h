// Random weights in every checkpoint format and random rows, for tests and benchmarks.
#pragma once

#include <cstdint>
#include <random>
#include <vector>

#include "base/team.h"
#include "kernels/packed_layout.h"
#include "kernels/packing.h"
#include "kernels/quantize.h"
#include "tensor/buffer.h"

namespace fulgur::kernels {

// Owns a weight as a checkpoint would hold it, and its packed form.
struct RandomWeight {
  LinearSource source;
  PackedLinear packed;
  std::vector<std::byte> weight;
  std::vector<std::byte> scale;
  tensor::Buffer<std::byte> packed_bytes;
};

inline void FillRandom(std::vector<std::byte>& bytes, std::mt19937& random) {
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random() & 0xffU);
}

inline std::vector<std::byte> FloatBytes(const std::vector<float>& values) {
  const auto bytes = std::as_bytes(std::span(values));
  return {bytes.begin(), bytes.end()};
}

inline std::vector<float> RandomFloats(int64_t n, float scale, std::mt19937& random) {
  std::normal_distribution<float> normal(0.0F, scale);
  std::vector<float> values(static_cast<size_t>(n));
  for (float& value : values) value = normal(random);
  return values;
}

inline void FillFloat(RandomWeight& w, std::mt19937& random) {
  const auto values = RandomFloats(w.source.out * w.source.in, 0.05F, random);
  w.weight = FloatBytes(values);
  w.source.weight_type = tensor::DType::kF32;
}

inline void FillFp8(RandomWeight& w, std::mt19937& random) {
  w.weight.resize(static_cast<size_t>(w.source.out * w.source.in));
  FillRandom(w.weight, random);
  for (std::byte& code : w.weight) {
    if ((code & std::byte{0x7f}) == std::byte{0x7f}) code = std::byte{0x3a};  // no NaN
  }
  const int64_t blocks = CeilDiv(w.source.out, kFp8BlockSize) * CeilDiv(w.source.in, kFp8BlockSize);
  w.scale.resize(static_cast<size_t>(blocks));
  for (std::byte& code : w.scale) code = static_cast<std::byte>(110 + random() % 12);
  w.source.weight_type = tensor::DType::kF8E4M3;
  w.source.scale_type = tensor::DType::kF8E8M0;
}

// `wide_scales`: one block in eight lies up to 12 powers of two below its neighbours, some are all
// zeros; trained weights have next to none of these.
inline void FillFp4(RandomWeight& w, bool wide_scales, std::mt19937& random) {
  w.weight.resize(static_cast<size_t>(w.source.out * w.source.in / 2));
  FillRandom(w.weight, random);
  w.scale.resize(static_cast<size_t>(w.source.out * w.source.in / kFp4BlockInputs));
  for (size_t block = 0; block < w.scale.size(); ++block) {
    const auto below = wide_scales && random() % 8 == 0 ? random() % 13 : random() % 3;
    w.scale[block] = static_cast<std::byte>(120 - below);
    if (wide_scales && random() % 31 == 0) {
      std::fill_n(w.weight.begin() + static_cast<int64_t>(block) * 16, 16, std::byte{0x80});
      w.scale[block] = static_cast<std::byte>(random() % 255);
    }
  }
  w.source.weight_type = tensor::DType::kI8;
  w.source.scale_type = tensor::DType::kF8E8M0;
}

inline void FillInteger(RandomWeight& w, int64_t bytes, std::mt19937& random) {
  w.weight.resize(static_cast<size_t>(bytes));
  FillRandom(w.weight, random);
  std::vector<float> scales(static_cast<size_t>(w.source.out));
  for (float& scale : scales) scale = 0.0001F * static_cast<float>(1 + random() % 1000);
  w.scale = FloatBytes(scales);
  w.source.weight_type = tensor::DType::kI8;
  w.source.scale_type = tensor::DType::kF32;
}

// kInt4 needs an even number of channels, kFp4 a multiple of 32 inputs.
inline RandomWeight MakeRandomWeight(WeightFormat format, int64_t out, int64_t in, uint32_t seed,
                                     bool wide_scales = true) {
  std::mt19937 random(seed);
  RandomWeight w;
  w.source.format = format;
  w.source.out = out;
  w.source.in = in;
  switch (format) {
    case WeightFormat::kF32:
    case WeightFormat::kBf16:
      FillFloat(w, random);
      break;
    case WeightFormat::kFp8Block:
      FillFp8(w, random);
      break;
    case WeightFormat::kInt8:
      FillInteger(w, out * in, random);
      break;
    case WeightFormat::kInt4:
      FillInteger(w, out / 2 * in, random);
      break;
    case WeightFormat::kFp4:
      FillFp4(w, wide_scales, random);
      break;
  }
  w.source.weight = w.weight.data();
  w.source.scale = w.scale.data();
  w.packed_bytes = tensor::Buffer<std::byte>(PackedBytes(w.source, format));
  Pack(w.source, format, w.packed_bytes.span(), base::WorkerRank(0, 1, nullptr));
  w.packed = {format, out, in, w.packed_bytes.span()};
  return w;
}

// Owns rows in all three representations.
struct RandomRows {
  std::vector<float> f32;
  std::vector<tensor::BFloat16> bf16;
  std::vector<int8_t> int8;
  std::vector<float> scale;
  ActivationRows view;
};

inline RandomRows MakeRandomRows(int64_t rows, int64_t cols, uint32_t seed) {
  std::mt19937 random(seed);
  RandomRows x;
  x.f32 = RandomFloats(rows * cols, 1.0F, random);
  x.bf16.resize(x.f32.size());
  x.int8.resize(x.f32.size());
  x.scale.resize(static_cast<size_t>(rows));
  const RowsOut out = {nullptr, x.bf16.data(), x.int8.data(), x.scale.data()};
  for (int64_t t = 0; t < rows; ++t) StoreRow(x.f32.data() + t * cols, cols, t, out);
  x.view = {rows, cols, x.f32.data(), x.bf16.data(), x.int8.data(), x.scale.data()};
  return x;
}

}  // namespace fulgur::kernels

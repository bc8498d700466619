// Linear layers in the packed weight formats, and the activation rows that they multiply.
//
// A weight stays in the precision of its checkpoint and is repacked once, when it is loaded, into
// the single layout that prefill and decode of every instruction set read (packing.h). Integer
// formats meet int8 activations and are exact in int32; FP8 and bf16 meet bf16 activations; F32 is
// for the router, the hyper-connections and for reference precision. Every element of a result is
// computed by one sequence of operations that depends on neither the number of rows nor the number
// of workers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/team.h"
#include "tensor/numbers.h"

namespace fulgur::kernels {

enum class WeightFormat {
  kF32,
  kBf16,
  kFp8Block,  // E4M3, one scale per 128 x 128 block
  kInt8,      // one fp32 scale per output channel
  kInt4,      // one fp32 scale per output channel
  kFp4,       // E2M1, one E8M0 scale per channel and 32 inputs
};

enum class ActivationFormat { kF32, kBf16, kInt8 };

constexpr ActivationFormat ActivationOf(WeightFormat format) {
  switch (format) {
    case WeightFormat::kF32:
      return ActivationFormat::kF32;
    case WeightFormat::kBf16:
    case WeightFormat::kFp8Block:
      return ActivationFormat::kBf16;
    case WeightFormat::kInt8:
    case WeightFormat::kInt4:
    case WeightFormat::kFp4:
      return ActivationFormat::kInt8;
  }
  return ActivationFormat::kF32;
}

// A weight [out, in] in packed form. The bytes belong to the model's weight storage.
struct PackedLinear {
  WeightFormat format = WeightFormat::kF32;
  int64_t out = 0;
  int64_t in = 0;
  std::span<const std::byte> bytes = {};
};

// T rows of K activations, in each representation that some following linear reads; others are
// null. Rows are contiguous: row t starts at t * cols.
struct ActivationRows {
  int64_t rows = 0;
  int64_t cols = 0;
  const float* f32 = nullptr;
  const tensor::BFloat16* bf16 = nullptr;
  const int8_t* int8 = nullptr;       // symmetric, one scale per row: x ~ int8 * int8_scale[row]
  const float* int8_scale = nullptr;  // [rows]
};

// The same for writing; a null representation is not wanted.
struct RowsOut {
  float* f32 = nullptr;
  tensor::BFloat16* bf16 = nullptr;
  int8_t* int8 = nullptr;
  float* int8_scale = nullptr;  // [rows]
};

// y[t, o] = sum_i weight[o, i] x[t, i] in fp32. `x` holds the representation ActivationOf(format).
struct LinearJob {
  const PackedLinear* weight = nullptr;
  ActivationRows x = {};
  int64_t x_stride = 0;  // elements from row to row of x, if not x.cols; fp32 and bf16 rows only
  float* y = nullptr;
  int64_t y_stride = 0;  // elements from row to row of y, if not weight->out
};

}  // namespace fulgur::kernels

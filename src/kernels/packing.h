// Repacks checkpoint tensors into the layouts that the kernels read: once, when a model is loaded.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/team.h"
#include "kernels/linear.h"
#include "tensor/dtype.h"

namespace fulgur::kernels {

// A weight [out, in] as it lies in the checkpoint file (row-major, unaligned bytes allowed).
//   kF32, kBf16   weight F32, BF16 or F16
//   kFp8Block     weight F8_E4M3; scale [ceil(out/128), ceil(in/128)], F8_E8M0 or F32
//   kFp4          weight I8 [out, in/2], input 2j in the low nibble of byte j; scale [out, in/32],
//   F8_E8M0 kInt8         weight I8; scale F32 [out] kInt4         weight I8 [out/2, in], row 2p in
//   the low nibble of row p; scale F32 [out]
struct LinearSource {
  WeightFormat format = WeightFormat::kF32;
  int64_t out = 0;
  int64_t in = 0;
  const std::byte* weight = nullptr;
  tensor::DType weight_type = tensor::DType::kF32;
  const std::byte* scale = nullptr;
  tensor::DType scale_type = tensor::DType::kF32;
};

// Writes row `row` of the source as fp32 [in]. The scalar meaning of every format; used by
// reference precision.
void DequantizeRow(const LinearSource& source, int64_t row, float* values);

// Bytes of `source` packed as `target`: its own format, kF32 or kBf16 (both lossless targets for
// reference precision and for small tensors).
int64_t PackedBytes(const LinearSource& source, WeightFormat target);

// Packs this worker's share of the channels. `packed` has PackedBytes() bytes at a 64-byte
// boundary. All workers of a team call it; the result is complete after the region ends.
void Pack(const LinearSource& source, WeightFormat target, std::span<std::byte> packed,
          const base::WorkerRank& worker);

}  // namespace fulgur::kernels

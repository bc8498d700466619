#include "kernels/row_set.h"

#include <algorithm>
#include <numeric>

#include "kernels/packed_layout.h"
#include "kernels/scratch.h"

namespace fulgur::kernels {
namespace {

constexpr int64_t kCachedRowBytes = 384 * 1024;  // of a 1 MB level-2 cache, beside a panel
constexpr int64_t kRowGrain = 24;                // a multiple of every tile height

struct RowSource {
  const std::byte* base = nullptr;
  int64_t stride_bytes = 0;
  int64_t row_bytes = 0;
  int64_t padded_bytes = 0;
};

RowSource SourceOf(WeightFormat format, const ActivationRows& x, int64_t x_stride) {
  const int64_t stride = x_stride != 0 ? x_stride : x.cols;
  const int64_t padded = PaddedInputs(format, x.cols);
  switch (ActivationOf(format)) {
    case ActivationFormat::kF32:
      return {reinterpret_cast<const std::byte*>(x.f32), stride * 4, x.cols * 4, padded * 4};
    case ActivationFormat::kBf16:
      return {reinterpret_cast<const std::byte*>(x.bf16), stride * 2, x.cols * 2, padded * 2};
    case ActivationFormat::kInt8:
      return {reinterpret_cast<const std::byte*>(x.int8), stride, x.cols, padded};
  }
  return {};
}

ScratchUse CopiesOf(ActivationFormat format) {
  switch (format) {
    case ActivationFormat::kF32:
      return ScratchUse::kRowsF32;
    case ActivationFormat::kBf16:
      return ScratchUse::kRowsBf16;
    case ActivationFormat::kInt8:
      return ScratchUse::kRowsInt8;
  }
  return ScratchUse::kRowsF32;
}

// Rows that end inside a kernel's step are copied and padded with zeros: enough for every weight
// format that reads them, so that two sets of the same rows may share the copies.
void PadRows(const RowSource& source, ActivationFormat format, RowSet& set) {
  const int64_t bytes = RoundUp(source.padded_bytes, 64);
  std::byte* copies = Scratch(CopiesOf(format), kMaxRows * bytes);
  for (int64_t r = 0; r < set.rows; ++r) {
    std::byte* copy = copies + r * bytes;
    __builtin_memcpy(copy, set.x[r], static_cast<size_t>(source.row_bytes));
    __builtin_memset(copy + source.row_bytes, 0, static_cast<size_t>(bytes - source.row_bytes));
    set.x[r] = copy;
  }
}

int32_t SumInt8(const std::byte* x, int64_t n) {
  const auto* values = reinterpret_cast<const int8_t*>(x);
  return std::accumulate(values, values + n, 0);
}

}  // namespace

void PrepareRows(WeightFormat format, const ActivationRows& x, int64_t x_stride,
                 const int32_t* index, int64_t first, int64_t count, RowSet& set) {
  Require(count <= kMaxRows, "a row set holds the rows");
  const RowSource source = SourceOf(format, x, x_stride);
  Require(source.base != nullptr, "x has the format that the weight reads");
  set.rows = count;
  for (int64_t r = 0; r < count; ++r) {
    const int64_t row = index == nullptr ? first + r : index[first + r];
    set.x[r] = source.base + row * source.stride_bytes;
    if (ActivationOf(format) != ActivationFormat::kInt8) continue;
    set.scale[r] = x.int8_scale[row];
    set.sum[r] = SumInt8(set.x[r], x.cols);
  }
  if (source.padded_bytes != source.row_bytes) PadRows(source, ActivationOf(format), set);
}

int64_t RowsAtATime(WeightFormat format, int64_t in) {
  const ActivationFormat activation = ActivationOf(format);
  const int64_t bytes = activation == ActivationFormat::kF32    ? 4
                        : activation == ActivationFormat::kBf16 ? 2
                                                                : 1;
  const int64_t fitting = kCachedRowBytes / (in * bytes) / kRowGrain * kRowGrain;
  return fitting < kRowGrain ? kRowGrain : std::min(fitting, kMaxRows);
}

}  // namespace fulgur::kernels

// Where cached rows lie in memory: rings keyed by position and pages of compressed rows. Views that
// own nothing; a null base is an empty cache.
#pragma once

#include <cstddef>
#include <cstdint>

namespace fulgur::kernels {

enum class RowFormat {
  kF32,
  kBf16,
  kInt8Scaled,  // `dim` int8 values, then one fp32 scale: value = int8 * scale
};

constexpr int64_t RowBytes(RowFormat format, int64_t dim) {
  switch (format) {
    case RowFormat::kF32:
      return 4 * dim;
    case RowFormat::kBf16:
      return 2 * dim;
    case RowFormat::kInt8Scaled:
      return dim + 4;
  }
  return 0;
}

// The rows of the last `rows` positions of one sequence: position p lies in row p % rows.
struct RingRows {
  std::byte* base = nullptr;
  int64_t rows = 0;
  int64_t row_bytes = 0;

  std::byte* Row(int64_t position) const { return base + position % rows * row_bytes; }
};

// Compressed rows of one sequence and layer: entry b lies in page b / rows_per_page of its table.
struct PagedRows {
  std::byte* base = nullptr;       // this layer's rows in page 0 of the pool
  int64_t page_bytes = 0;          // from one page of the pool to the next
  const int32_t* pages = nullptr;  // the sequence's block table
  int64_t rows_per_page = 0;
  int64_t row_bytes = 0;

  std::byte* Row(int64_t entry) const {
    return base + pages[entry / rows_per_page] * page_bytes + entry % rows_per_page * row_bytes;
  }
};

}  // namespace fulgur::kernels

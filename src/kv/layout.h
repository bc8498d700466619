// Where every byte of sequence memory lies: pages of compressed rows and state slots of rings, for
// all layers at once.
//
// A page holds what lives as long as its sequence: the compressed rows and indexer keys of 256
// tokens. A state slot holds what a sliding window and unfinished compressions still need: rings
// whose row follows from the position alone, so a rejected draft is simply overwritten. Both are
// one contiguous block over all layers, so that a page or a slot can be copied, moved or stored as
// a whole. Planner, admission test and decoder all read this one layout.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels/cache_rows.h"

namespace fulgur::kv {

inline constexpr int64_t kPageTokens = 256;

struct LayoutParams {
  std::vector<int64_t> ratios;  // per layer: 0 (no compression), or a divisor of 256
  int64_t head_dim = 0;
  int64_t index_head_dim = 0;
  int64_t sliding_window = 0;
  int64_t lookahead = 0;    // tokens that may be written ahead of the accepted ones (drafts)
  int64_t draft_bytes = 0;  // of a slot, for what a drafter keeps beside its layers' windows
  kernels::RowFormat row_format = kernels::RowFormat::kBf16;        // windows, compressed rows
  kernels::RowFormat key_format = kernels::RowFormat::kInt8Scaled;  // indexer keys
};

// Compressor inputs of the latest tokens, fp32: row (position mod rows) holds the kv projection
// [cols], then the gate projection [cols].
struct CompressorRing {
  int64_t offset = 0;  // bytes from the start of the slot
  int64_t rows = 0;
  int64_t cols = 0;  // D, or 2 D where blocks overlap
};

// Offsets in bytes, from the start of a slot or of a page; every part starts at a cache line.
struct LayerLayout {
  int64_t ratio = 0;
  int64_t window_offset = 0;        // slot: [window_rows, head_dim]
  CompressorRing compressor;        // slot: layers with a ratio
  CompressorRing index_compressor;  // slot: layers with an indexer
  int64_t rows_per_page = 0;        // 256 / ratio
  int64_t rows_offset = 0;          // page: [rows_per_page, head_dim]
  int64_t keys_offset = 0;          // page: [rows_per_page, index_head_dim], indexer layers

  bool has_indexer() const { return index_compressor.rows != 0; }
};

class Layout {
 public:
  explicit Layout(const LayoutParams& params);

  const LayoutParams& params() const { return params_; }
  const LayerLayout& layer(int64_t index) const { return layers_[static_cast<size_t>(index)]; }
  int64_t num_layers() const { return static_cast<int64_t>(layers_.size()); }
  int64_t page_bytes() const { return page_bytes_; }
  int64_t slot_bytes() const { return slot_bytes_; }
  int64_t draft_offset() const { return draft_offset_; }  // slot: [draft_bytes]
  int64_t window_rows() const { return params_.sliding_window + params_.lookahead; }
  int64_t row_bytes() const { return kernels::RowBytes(params_.row_format, params_.head_dim); }
  int64_t key_bytes() const {
    return kernels::RowBytes(params_.key_format, params_.index_head_dim);
  }

  static constexpr int64_t PagesFor(int64_t tokens) {
    return (tokens + kPageTokens - 1) / kPageTokens;
  }

 private:
  LayerLayout PlaceLayer(int64_t ratio);
  CompressorRing PlaceRing(int64_t ratio, int64_t dim);

  LayoutParams params_;
  int64_t page_bytes_ = 0;
  int64_t slot_bytes_ = 0;
  int64_t draft_offset_ = 0;
  std::vector<LayerLayout> layers_;
};

// Compressed blocks of this ratio overlap: an entry also sees the block before its own, and an
// indexer chooses among the entries (DeepSeek-V4 compressed sparse attention).
inline constexpr int64_t kOverlapRatio = 4;

}  // namespace fulgur::kv

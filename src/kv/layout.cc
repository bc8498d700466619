#include "kv/layout.h"

#include "base/check.h"

namespace fulgur::kv {
namespace {

constexpr int64_t kLine = 64;
constexpr int64_t kF32Bytes = 4;

// Reserves `bytes` behind *end, at a cache line; returns where they start.
int64_t Append(int64_t* end, int64_t bytes) {
  const int64_t offset = *end;
  *end += (bytes + kLine - 1) / kLine * kLine;
  return offset;
}

}  // namespace

Layout::Layout(const LayoutParams& params) : params_(params) {
  for (const int64_t ratio : params.ratios) layers_.push_back(PlaceLayer(ratio));
  draft_offset_ = Append(&slot_bytes_, params.draft_bytes);
}

CompressorRing Layout::PlaceRing(int64_t ratio, int64_t dim) {
  const int64_t blocks = ratio == kOverlapRatio ? 2 : 1;
  CompressorRing ring;
  ring.rows = blocks * ratio + params_.lookahead;
  ring.cols = blocks * dim;
  ring.offset = Append(&slot_bytes_, ring.rows * 2 * ring.cols * kF32Bytes);
  return ring;
}

LayerLayout Layout::PlaceLayer(int64_t ratio) {
  LayerLayout layer;
  layer.ratio = ratio;
  layer.window_offset = Append(&slot_bytes_, window_rows() * row_bytes());
  if (ratio == 0) return layer;
  CHECK_EQ(kPageTokens % ratio, 0);
  layer.compressor = PlaceRing(ratio, params_.head_dim);
  layer.rows_per_page = kPageTokens / ratio;
  layer.rows_offset = Append(&page_bytes_, layer.rows_per_page * row_bytes());
  if (ratio != kOverlapRatio) return layer;
  layer.index_compressor = PlaceRing(ratio, params_.index_head_dim);
  layer.keys_offset = Append(&page_bytes_, layer.rows_per_page * key_bytes());
  return layer;
}

}  // namespace fulgur::kv

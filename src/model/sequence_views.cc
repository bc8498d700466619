#include "model/sequence_views.h"

namespace fulgur::model {
namespace {

kernels::RingRows WindowRing(const kv::Layout& layout, const kv::LayerLayout& layer,
                             std::byte* slot) {
  return {slot + layer.window_offset, layout.window_rows(), layout.row_bytes()};
}

kernels::RingRows CompressorRows(const kv::CompressorRing& ring, std::byte* slot) {
  return {slot + ring.offset, ring.rows, 2 * ring.cols * static_cast<int64_t>(sizeof(float))};
}

}  // namespace

SequenceViews::SequenceViews(const kv::Store& store, int64_t first_layer, int64_t num_layers,
                             int64_t max_sequences)
    : store_(store), first_layer_(first_layer), layers_(static_cast<size_t>(num_layers)) {
  const auto count = static_cast<size_t>(max_sequences);
  for (size_t n = 0; n < layers_.size(); ++n) {
    LayerViews& views = layers_[n];
    views.ratio = store.layout().layer(first_layer + static_cast<int64_t>(n)).ratio;
    views.attention.reserve(count);
    views.compress.reserve(count);
    views.index_compress.reserve(count);
    views.index.reserve(count);
    views.window_rings.reserve(count);
    views.compressor_rings.reserve(count);
    views.index_compressor_rings.reserve(count);
  }
}

void SequenceViews::Fill(std::span<const SequenceRows> sequences) {
  for (size_t n = 0; n < layers_.size(); ++n) {
    FillLayer(store_.layout().layer(first_layer_ + static_cast<int64_t>(n)), sequences, layers_[n]);
  }
}

void SequenceViews::FillLayer(const kv::LayerLayout& layer, std::span<const SequenceRows> sequences,
                              LayerViews& views) const {
  views.attention.clear();
  views.compress.clear();
  views.index_compress.clear();
  views.index.clear();
  views.window_rings.clear();
  views.compressor_rings.clear();
  views.index_compressor_rings.clear();
  const kv::Layout& layout = store_.layout();
  for (const SequenceRows& sequence : sequences) {
    const kernels::RowRange range = {sequence.first_position, sequence.first_row,
                                     sequence.num_rows};
    const auto paged = [&](int64_t offset, int64_t row_bytes) -> kernels::PagedRows {
      return {store_.page(0) + offset, layout.page_bytes(), sequence.pages.data(),
              layer.rows_per_page, row_bytes};
    };
    std::byte* slot = store_.slot(sequence.slot);
    const kernels::RingRows window = WindowRing(layout, layer, slot);
    views.window_rings.push_back({range, window});
    if (layer.ratio == 0) {
      views.attention.push_back({range, window, {}});
      continue;
    }
    const kernels::PagedRows rows = paged(layer.rows_offset, layout.row_bytes());
    const kernels::RingRows ring = CompressorRows(layer.compressor, slot);
    views.attention.push_back({range, window, rows});
    views.compress.push_back({range, ring, rows});
    views.compressor_rings.push_back({range, ring});
    if (!layer.has_indexer()) continue;
    const kernels::PagedRows keys = paged(layer.keys_offset, layout.key_bytes());
    const kernels::RingRows index_ring = CompressorRows(layer.index_compressor, slot);
    views.index_compress.push_back({range, index_ring, keys});
    views.index.push_back({range, keys});
    views.index_compressor_rings.push_back({range, index_ring});
  }
}

}  // namespace fulgur::model

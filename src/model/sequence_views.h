// Where the sequences of a step keep their memory, as the kernels' arguments: one set of views per
// layer, filled before the workers start.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/layer_args.h"
#include "kv/store.h"
#include "model/step_batch.h"

namespace fulgur::model {

// One layer's views, one for each span of rows. Those of missing parts (no compression, no indexer)
// stay unused.
struct LayerViews {
  int64_t ratio = 0;
  std::vector<kernels::AttentionSequence> attention;
  std::vector<kernels::CompressSequence> compress;
  std::vector<kernels::CompressSequence> index_compress;
  std::vector<kernels::IndexSequence> index;
  std::vector<kernels::RingSequence> window_rings;
  std::vector<kernels::RingSequence> compressor_rings;
  std::vector<kernels::RingSequence> index_compressor_rings;
};

class SequenceViews {
 public:
  // Of layers [first_layer, first_layer + num_layers) of the store.
  SequenceViews(const kv::Store& store, int64_t first_layer, int64_t num_layers,
                int64_t max_sequences);

  // Points the views at the batch's sequences. Allocates nothing.
  void Fill(std::span<const SequenceRows> sequences);

  // Layer first_layer + index.
  const LayerViews& layer(int64_t index) const { return layers_[static_cast<size_t>(index)]; }

 private:
  void FillLayer(const kv::LayerLayout& layout, std::span<const SequenceRows> sequences,
                 LayerViews& views) const;

  const kv::Store& store_;
  const int64_t first_layer_;
  std::vector<LayerViews> layers_;
};

}  // namespace fulgur::model

// A roofline model of one step: what each stage reads and computes, and from that how long it takes
// on a machine.
//
// A stage takes about as long as the slower of its reading and its arithmetic (Williams, Waterman,
// Patterson, "Roofline", 2009), and ends with a barrier. Speculation and what lies between two
// steps are not counted.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "kernels/linear.h"
#include "kv/layout.h"
#include "plan/machine_figures.h"
#include "plan/model_shape.h"

namespace fulgur::plan {

// A step whose sequences all look alike.
struct StepShape {
  int64_t sequences = 1;
  int64_t rows_each = 1;   // tokens computed of each sequence
  int64_t context = 0;     // tokens of each sequence before them
  int64_t logit_rows = 1;  // rows whose logits are wanted, of all sequences together

  int64_t rows() const { return sequences * rows_each; }
};

enum class StageKind {
  kStreams,           // hyper-connections before and after a sub-layer
  kAttentionInputs,   // latents of queries, the window's keys, compressor and indexer inputs
  kQueries,           // from the latents
  kIndex,             // scores of compressed entries, and the choice among them
  kAttention,         // over window and entries
  kAttentionOutputs,  // both output projections
  kRouter,
  kExperts,  // routed and shared
  kHead,
};
std::string_view StageName(StageKind kind);

// Weights of one format that meet about the same number of rows.
struct ProductWork {
  kernels::WeightFormat format = kernels::WeightFormat::kF32;
  double bytes = 0.0;    // packed, read once
  double weights = 0.0;  // each takes two operations per row
  double rows = 0.0;
};

struct StageWork {
  StageKind kind = StageKind::kStreams;
  int64_t layer = 0;  // the head: the number of layers
  int64_t ratio = 0;  // of the layer
  std::vector<ProductWork> products;
  double cache_bytes = 0.0;    // of sequence memory
  double attention_ops = 0.0;  // bf16
  double index_ops = 0.0;      // int8
  double vector_ops = 0.0;     // fp32, element by element
  int64_t units = 1;           // pieces into which workers split it

  double bytes() const;
  double ops() const;
};

// Every stage in order. `layout` is the sequence memory of the model.
std::vector<StageWork> WorkOfStep(const ModelShape& model, const kv::Layout& layout,
                                  const StepShape& step);

struct StageTime {
  double read = 0.0;     // seconds if only memory counted
  double compute = 0.0;  // if only arithmetic counted
  double start = 0.0;    // of the busiest worker's pieces
  double barrier = 0.0;
  double total = 0.0;
};
StageTime TimeOf(const StageWork& stage, const MachineFigures& machine);

// Bytes that a step must read, and the seconds that it is expected to take.
struct StepTime {
  double bytes = 0.0;
  double ops = 0.0;
  double seconds = 0.0;
};
StepTime PredictStep(const ModelShape& model, const kv::Layout& layout, const StepShape& step,
                     const MachineFigures& machine);

// Seconds to compute a prompt of `tokens` in chunks of at most `chunk`.
double PredictPrompt(const ModelShape& model, const kv::Layout& layout, int64_t tokens,
                     int64_t chunk, const MachineFigures& machine);

}  // namespace fulgur::plan

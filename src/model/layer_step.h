// A layer's work on one step. Every worker of the team calls these with the same arguments; they
// hold the barriers between a layer's regions, and another one is due before their result is read,
// if they do not say that they end with it.
//
// A step of few rows takes one region for each product that needs all of the one before, and no
// more: inputs of attention, queries, index scores (where an index has to choose), attention, its
// groups, its output, router, gate and up, down. Everything else is done in the region that makes
// or reads the rows.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "absl/functional/function_ref.h"
#include "base/team.h"
#include "kernels/op_table.h"
#include "model/config.h"
#include "model/precision.h"
#include "model/scratch.h"
#include "model/sequence_views.h"
#include "model/weights.h"

namespace fulgur::model {

// What all stages of a step share.
struct StepContext {
  const ModelConfig& config;
  const kernels::OpTable& ops;
  const Scratch& scratch;
  const SequenceViews& views;
  Precision precision;
  std::span<const float> frequencies;             // [R / 2] layers without compression
  std::span<const float> compressed_frequencies;  // [R / 2] compressed layers
  std::span<const int32_t> tokens;                // [T]
  int64_t end_position = 0;                       // above every position of the step
  // A sequence's rows attend to each other in both directions, and leave nothing in its rings.
  bool whole_block = false;

  int64_t rows() const { return static_cast<int64_t>(tokens.size()); }
};

// What the weights of one layer read.
struct LayerFormats {
  Formats attention_inputs;  // x of attention
  Formats expert_inputs;     // x of router and experts
  Formats expert_inner;      // h of the down projections
};
LayerFormats FormatsOfLayer(const Layer& layer);

// scratch.rotation of rows at these positions; only a part by each worker, as everything below.
void WriteRotations(const StepContext& step, std::span<const int64_t> positions,
                    const base::WorkerRank& worker);

// out [T, copies, size] = the rows of the step's tokens, `copies` times each.
void LookUp(const StepContext& step, const Embedding& table, int64_t size, int64_t copies,
            float* out, const base::WorkerRank& worker);

// Ends a region whose result goes through `rows`, a stage of whole rows that reads `values` values
// in all. Of few values, worker 0 makes the rows alone once all are there, in less time than
// another barrier takes; of more, the workers share them. Ends with a barrier.
void EndRegion(const base::WorkerRank& worker, int64_t values,
               absl::FunctionRef<void(const base::WorkerRank&)> rows);

// How the streams become the rows of a sub-layer: scratch.x in the formats that it reads. The head
// chooses its rows itself, and has no norm here.
struct SublayerInput {
  const HyperConnection& hc;
  std::span<const float> norm = {};
  Formats formats = {};
};
SublayerInput AttentionInput(const Layer& layer, const LayerFormats& formats);

// Adds what the last sub-layer returned (null: nothing) to the streams and enters the next. Of `o`,
// a worker reads the channels that it shares as its own (op_table.h). Ends with a barrier.
void EnterSublayer(const StepContext& step, const SublayerInput& next, const float* o,
                   const base::WorkerRank& worker);

// The arguments that collapse the streams by a hyper-connection that was entered; the outputs are
// left to the caller.
kernels::HcPreArgs CollapseArgs(const StepContext& step, const HyperConnection& hc,
                                std::span<const float> norm);

// From the input of the layer's attention to the input of what follows the layer. Ends with a
// barrier.
void RunLayer(const StepContext& step, const Layer& layer, const LayerFormats& formats,
              int64_t index, const SublayerInput& next, const base::WorkerRank& worker);

// scratch.o = attention(scratch.x), each worker its own channels. Reads and writes the layer's part
// of the cache.
void RunAttention(const StepContext& step, const Layer& layer, int64_t index,
                  const base::WorkerRank& worker);

// Keys of rows whose attention nobody wants: into the rings of one layer.
struct KeyJob {
  const Attention* attention = nullptr;
  std::span<const kernels::RingSequence> rings = {};
  float* projected = nullptr;  // [T, D]
  std::byte* rows = nullptr;   // [T, D] in the cache's format
};

// Projects x, normalises, rotates and keeps the keys of each job, which must all read the same
// formats of x; scratch.rotation must be that of the rows. Layers without compression only.
void WriteKeys(const StepContext& step, std::span<const KeyJob> jobs, const ActivationBuffer& x,
               const base::WorkerRank& worker);

// scratch.o = experts(scratch.x), each worker its own channels.
void RunExperts(const StepContext& step, const Layer& layer, const LayerFormats& formats,
                const base::WorkerRank& worker);

// Collects independent products; runs them in groups, and what is left on Run.
class LinearJobs {
 public:
  LinearJobs(const StepContext& step, const base::WorkerRank& worker)
      : ops_(step.ops), rows_(step.rows()), worker_(worker) {}

  // y [T, out] = weight x; strides as in LinearJob. An absent weight is skipped.
  void Add(const kernels::PackedLinear& weight, const ActivationBuffer& x, float* y,
           int64_t y_stride = 0);
  void Add(const kernels::LinearJob& job);
  void Run();

 private:
  const kernels::OpTable& ops_;
  const int64_t rows_;
  const base::WorkerRank& worker_;
  std::array<kernels::LinearJob, 16> jobs_;
  size_t count_ = 0;
};

}  // namespace fulgur::model

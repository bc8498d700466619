// One layer's work on one step. Every worker of the team calls these with the same arguments; they
// hold the barriers between a layer's stages, and another one is due before their result is read.
#pragma once

#include <array>
#include <cstdint>
#include <span>

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

  int64_t rows() const { return static_cast<int64_t>(tokens.size()); }
};

// What the weights of one layer read.
struct LayerFormats {
  Formats attention_inputs;  // x of attention
  Formats expert_inputs;     // x of router and experts
  Formats expert_inner;      // h of the down projections
};
LayerFormats FormatsOfLayer(const Layer& layer);

// scratch.o = attention(scratch.x). Reads and writes the layer's part of the cache.
void RunAttention(const StepContext& step, const Layer& layer, int64_t index,
                  const base::WorkerRank& worker);

// scratch.o = experts(scratch.x).
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

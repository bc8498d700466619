// A model without its weights: which matrices there are and in which formats, before anything is
// loaded.
#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "kernels/linear.h"
#include "model/checkpoint.h"
#include "model/config.h"
#include "model/weights.h"

namespace fulgur::plan {

struct ModelShape {
  model::ModelConfig config;
  model::Weights weights;    // formats and sizes alone: there are no bytes behind them
  int64_t weight_bytes = 0;  // of the main model in memory, as the loader lays it out
};

// In the formats of the official checkpoints.
ModelShape ShapeOfConfig(const model::ModelConfig& config);

// In the formats that the checkpoint has. Reads headers only; the error says what is missing.
absl::StatusOr<ModelShape> ShapeOfCheckpoint(const model::Checkpoint& checkpoint);

// Bytes of a packed matrix, and the number of its weights.
int64_t BytesOf(const kernels::PackedLinear& matrix);
double WeightsOf(const kernels::PackedLinear& matrix);

}  // namespace fulgur::plan

// Random weights for a configuration without a checkpoint: to measure speed and memory, and to try
// a server.
#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "model/config.h"
#include "model/precision.h"
#include "model/weights.h"

namespace fulgur::model {

struct DummyOptions {
  Precision precision = Precision::kNative;
  int num_threads = 1;
  uint64_t seed = 0;
};

// Weights of the model and of its drafter, if config.drafter says so, in the formats of the
// official checkpoints (FP8 blocks, FP4 experts, bf16 and fp32 where those have them), of a size
// that keeps activations near 1. The same seed gives the same weights with any number of threads.
absl::StatusOr<Weights> MakeDummyWeights(const ModelConfig& config, const DummyOptions& options);

}  // namespace fulgur::model

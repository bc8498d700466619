// The forward pass as the engine sees it: rows in, logits out.
#pragma once

#include <cstdint>
#include <span>

#include "absl/status/status.h"
#include "model/step_batch.h"

namespace fulgur::engine {

// Called from the engine's thread only.
class ModelRunner {
 public:
  virtual ~ModelRunner() = default;

  virtual int64_t VocabSize() const = 0;

  // Computes the rows and writes the wanted logits to [sum of num_logit_rows, V], in batch order.
  // An error is final: the engine dies of it.
  virtual absl::Status Forward(const model::StepBatch& batch, std::span<float> logits) = 0;
};

}  // namespace fulgur::engine

// The model as the engine sees it: rows in, logits out, and drafts of what may follow.
#pragma once

#include <cstdint>
#include <span>

#include "absl/status/status.h"
#include "base/check.h"
#include "model/drafter.h"
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

  // Which drafter is loaded, and how many drafts a sequence may have in a step.
  virtual model::DrafterKind drafter() const { return model::DrafterKind::kNone; }
  virtual int64_t MaxDrafts() const { return 0; }

  // Tells the drafter what stands of the step that Forward has just run, and fills `out` with the
  // drafts that are wanted. Runners without a drafter are not asked. An error is final.
  virtual absl::Status Propose(std::span<const model::DraftRows>, model::DraftChooser&,
                               model::Drafts&) {
    CHECK(drafter() != model::DrafterKind::kNone);
    return absl::OkStatus();
  }
};

}  // namespace fulgur::engine

// The model: weights, scratch memory, the forward pass over a ragged batch and, if the
// configuration has a drafter, drafts of what may follow.
//
// A value of a row depends on its sequence's tokens up to that row and on nothing else: not on
// other rows, the chunking of a prompt, or the number of workers. So a request's logits are bit for
// bit the same however they are computed (in one process, on one kernel table).
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "absl/status/statusor.h"
#include "base/team.h"
#include "kernels/op_table.h"
#include "kv/layout.h"
#include "kv/store.h"
#include "model/config.h"
#include "model/drafter.h"
#include "model/precision.h"
#include "model/step_batch.h"
#include "model/weights.h"

namespace fulgur::model {

// The largest step; scratch memory is sized for it once.
struct StepLimits {
  int64_t max_tokens = 0;      // T: rows of one step
  int64_t max_sequences = 0;   // S: sequences of one step
  int64_t max_logit_rows = 0;  // rows of one step whose logits are wanted
  int64_t max_position = 0;    // positions are below this
  int64_t max_drafts = 0;      // drafts of one sequence in one step; no matter without a drafter
};

// The sequence memory that a model and its drafter need. `lookahead`: tokens written ahead of the
// accepted ones.
kv::Layout CacheLayout(const ModelConfig& config, Precision precision, int64_t lookahead);

class Decoder;

// One thread at a time calls Forward and Propose. Nothing is allocated inside them.
class Model {
 public:
  // `team`, `ops` and `store` must outlive the model; `store` must have CacheLayout's layout.
  static absl::StatusOr<std::unique_ptr<Model>> Create(
      ModelConfig config, Weights weights, Precision precision, const StepLimits& limits,
      const kernels::OpTable& ops, base::WorkerTeam& team, const kv::Store& store);
  ~Model();
  Model(const Model&) = delete;
  Model& operator=(const Model&) = delete;

  const ModelConfig& config() const;
  const StepLimits& limits() const;

  // Runs the batch: writes each sequence's pages and slot, and the wanted logits into
  // [sum of num_logit_rows, V], in batch order. Every sequence's earlier positions must have been
  // run before, its block table must cover its last position, and a slot appears once. Breaking
  // this or the limits is a broken invariant (CHECK).
  void Forward(const StepBatch& batch, std::span<float> logits);

  // Drafts that Propose gives at most for one sequence; 0 without a drafter.
  int64_t max_drafts() const;

  // Only with a drafter, once after each Forward: see drafter.h. Writes the drafter's part of the
  // slots of the sequences that are named; their block tables are not read any more.
  void Propose(std::span<const DraftRows> rows, DraftChooser& chooser, Drafts& out);

  // Bytes of step scratch, and what Create would need for these limits.
  int64_t scratch_bytes() const;
  static int64_t ScratchBytes(const ModelConfig& config, Precision precision,
                              const StepLimits& limits, int num_workers);

 private:
  explicit Model(std::unique_ptr<Decoder> decoder);

  std::unique_ptr<Decoder> decoder_;
};

}  // namespace fulgur::model

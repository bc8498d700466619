// What the two kinds of drafters have in common: which rows of the last step stand, and drafts
// chosen slot by slot.
//
// A drafter runs in the main model's scratch memory, between two of its steps, with the main
// model's layers and kernels.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/team.h"
#include "kernels/op_table.h"
#include "kv/store.h"
#include "model/drafter.h"
#include "model/layer_step.h"
#include "model/model.h"
#include "model/pending_rows.h"
#include "model/step_batch.h"

namespace fulgur::model {

// The main model, as its drafter uses it.
struct ModelParts {
  const ModelConfig& config;
  const Weights& weights;
  Precision precision;
  const StepLimits& limits;
  const kernels::OpTable& ops;
  base::WorkerTeam& team;
  const kv::Store& store;
  const Scratch& scratch;
  std::span<const float> frequencies;  // of layers without compression
};

class Drafter {
 public:
  explicit Drafter(const ModelParts& parts);
  virtual ~Drafter() = default;
  Drafter(const Drafter&) = delete;
  Drafter& operator=(const Drafter&) = delete;

  // Remembers the batch that runs next.
  virtual void BeginStep(const StepBatch& batch);

  // In every worker, while the streams are as main layer `layer` left them (-1: the embedding).
  virtual void AfterLayer(int64_t /*layer*/, const base::WorkerRank& /*worker*/) const {}

  void Propose(std::span<const DraftRows> rows, DraftChooser& chooser, Drafts& out);

 protected:
  // A request whose drafts are wanted. They are kept in order of falling num_drafts, so that those
  // that want a certain slot come first.
  struct Drafting {
    int32_t request = 0;  // index into the rows of Propose
    int32_t num_drafts = 0;
    int64_t first_result = 0;  // place of its drafts in the results
    int32_t previous = 0;      // the token before the draft that is chosen next
  };

  // Rows of a sequence, one behind the other, that waited for their keys (pending_rows.h).
  struct WaitingRows {
    const SequenceRows* sequence = nullptr;
    int64_t position = 0;  // of the first
    int64_t count = 0;
    const float* inputs = nullptr;    // [count, DraftInputs]
    const int32_t* tokens = nullptr;  // [count] behind them
  };

  // Before WriteWaiting, if there is anything to write: it may overwrite what RunContext reads.
  virtual void PrepareForWaiting(std::span<const DraftRows> /*rows*/) {}
  // Writes the keys of at most KeyRows rows that waited, in at most max_sequences pieces.
  virtual void WriteWaiting(std::span<const WaitingRows> waiting) = 0;
  // Before the drafts: the keys of the batch's rows that stand, where drafts are wanted, and
  // whatever precedes slot 0.
  virtual void RunContext(std::span<const DraftRows> rows) = 0;
  // What keys are made of, from row `row` of a request on: [.., DraftInputs].
  virtual const float* Inputs(const DraftRows& rows, int64_t row) const = 0;
  // The logits of draft `slot` of drafting(slot).
  virtual void RunSlot(int32_t slot) = 0;
  virtual const float* Logits(size_t drafting, int32_t slot) const = 0;
  // How likely the chosen token is accepted.
  virtual float Confidence(size_t drafting, int32_t slot, int32_t token) const = 0;

  // The requests that want draft `slot`.
  std::span<const Drafting> drafting(int32_t slot) const;

  const SequenceRows& SequenceOf(const DraftRows& rows) const {
    return sequences_[static_cast<size_t>(rows.sequence)];
  }
  // Rows of a draft block, which reads no pages.
  static SequenceRows MakeRows(const SequenceRows& sequence, int64_t first_position,
                               int64_t first_row, int64_t num_rows);
  // The token behind row `row` of a request, one of those that stand.
  int32_t TokenBehind(const DraftRows& rows, int64_t row) const;
  // The position behind the rows that stand, which is that of next_token.
  int64_t NextPosition(const DraftRows& rows) const {
    return SequenceOf(rows).first_position + rows.num_accepted;
  }
  // The first of a request's rows that stand whose key may still be read.
  int64_t FirstInWindow(const DraftRows& rows) const {
    return std::max<int64_t>(0, rows.num_accepted - config_.sliding_window);
  }

  PendingRows PendingOf(const DraftRows& rows) const;
  // A request's rows that stand join those that wait in its slot.
  void Keep(const DraftRows& rows) const;

  StepContext MakeStep(const SequenceViews& views) const;
  const DrafterWeights& weights() const { return parts_.weights.drafter; }
  const Embedding& embedding() const;
  const kernels::PackedLinear& head() const;

  const ModelParts parts_;
  const ModelConfig& config_;
  const Scratch& scratch_;
  std::vector<LayerFormats> formats_;

 private:
  void Arrange(std::span<const DraftRows> rows, Drafts& out);
  bool AnyWaits(std::span<const DraftRows> rows) const;
  void CollectWaiting(const DraftRows& rows);
  void FlushWaiting();

  std::vector<int32_t> tokens_;          // of the batch
  std::vector<SequenceRows> sequences_;  // of the batch; their block tables may be gone
  std::vector<Drafting> drafting_;
  std::vector<WaitingRows> waiting_;  // whose keys are written next
  int64_t num_waiting_ = 0;           // rows of these
};

// The drafter of the configuration, or null.
std::unique_ptr<Drafter> MakeDrafter(const ModelParts& parts);

}  // namespace fulgur::model

// DSpark: a few stages fill a block of positions at once, and a Markov chain of low rank makes each
// draft depend on the one before it. A confidence head says how likely each draft is accepted.
//
// A stage attends to keys that are made of the main model's residual streams, averaged after some
// of its layers: the window before the block; and to the whole block, which leaves nothing behind.
// The block always has its trained width, however many drafts are wanted: its rows see each other,
// so another width would change them all.
#pragma once

#include <functional>
#include <vector>

#include "model/draft_model.h"

namespace fulgur::model {

class DsparkDrafter : public Drafter {
 public:
  explicit DsparkDrafter(const ModelParts& parts);

  void BeginStep(const StepBatch& batch) override;
  void AfterLayer(int64_t layer, const base::WorkerRank& worker) const override;

 private:
  // Rows of the batch whose streams are captured, side by side.
  struct Captured {
    int64_t first_row = 0;  // of the batch
    int64_t num_rows = 0;
    int64_t place = 0;  // of the first one in the memory of captured rows
  };

  void WriteWaiting(std::span<const WaitingRows> waiting) override;
  void RunContext(std::span<const DraftRows> rows) override;
  void RunSlot(int32_t slot) override;
  const float* Inputs(const DraftRows& rows, int64_t row) const override;
  const float* Logits(size_t drafting, int32_t slot) const override;
  float Confidence(size_t drafting, int32_t slot, int32_t token) const override;

  void ClearContext();
  void AddContext(const SequenceRows& sequence, const float* features, int64_t position,
                  int64_t count);
  void FinishContext();
  void ArrangeBlocks(std::span<const DraftRows> rows);

  // In every worker:
  void WriteContext(const base::WorkerRank& worker) const;
  void RunBlocks(const base::WorkerRank& worker) const;
  SublayerInput InputOf(size_t stage) const;  // that of the head behind the last one
  void RunHead(const base::WorkerRank& worker) const;
  void RunChain(const base::WorkerRank& worker) const;

  int64_t feature_width() const { return DraftInputs(config_); }
  // Where the results of a draft lie.
  int64_t DraftRow(size_t drafting, int32_t slot) const { return first_draft_[drafting] + slot; }

  const std::function<void(const base::WorkerRank&)> context_region_;
  const std::function<void(const base::WorkerRank&)> chain_region_;
  Formats key_inputs_;              // of all stages
  std::vector<Captured> captured_;  // [S], of the batch

  // The rows that stand.
  SequenceViews context_views_;
  StepContext context_;
  std::vector<int32_t> no_tokens_;
  std::vector<int64_t> context_positions_;
  std::vector<SequenceRows> context_sequences_;
  std::vector<kernels::NormRowsJob> features_;  // gathers the captured rows
  std::vector<KeyJob> key_jobs_;                // [stages]

  // The blocks.
  SequenceViews block_views_;
  StepContext block_;
  std::vector<int32_t> block_tokens_;
  std::vector<int64_t> block_positions_;
  std::vector<SequenceRows> block_sequences_;
  std::vector<int32_t> draft_rows_;  // the rows of the blocks whose drafts are wanted
  std::vector<int64_t> first_draft_;

  // The chain.
  StepContext chain_;
  std::vector<int32_t> previous_;
  int32_t slot_ = 0;
};

}  // namespace fulgur::model

// Multi-token prediction as DeepSeek-V4 has it (multi-token prediction: DeepSeek-V3,
// arXiv:2412.19437): one block reads the main model's residual streams at a position and the
// embedding of the token behind it, and predicts the token behind that. Fed its own streams and
// the token that was drafted, it goes on.
//
// The block's keys depend on its input alone, so rows of which no draft is wanted only write
// theirs. Keys of drafted positions lie in the ring until the true ones overwrite them.
#pragma once

#include <functional>
#include <vector>

#include "model/draft_model.h"

namespace fulgur::model {

class MtpDrafter : public Drafter {
 public:
  explicit MtpDrafter(const ModelParts& parts);

 private:
  void PrepareForWaiting(std::span<const DraftRows> rows) override;
  void WriteWaiting(std::span<const WaitingRows> waiting) override;
  void RunContext(std::span<const DraftRows> rows) override;
  void RunSlot(int32_t slot) override;
  const float* Inputs(const DraftRows& rows, int64_t row) const override;
  const float* Logits(size_t drafting, int32_t slot) const override;
  float Confidence(size_t drafting, int32_t slot, int32_t token) const override;

  void ClearRows();
  void AddSpan(const float* streams, const SequenceRows& batch, int64_t position, int64_t count);
  void AddContext(const DraftRows& rows, int64_t begin, int64_t end);
  void FinishRows();
  void FeedBack();

  // In every worker:
  void MixInputs(const base::WorkerRank& worker) const;
  void RunContextStep(const base::WorkerRank& worker) const;
  void RunSlotStep(const base::WorkerRank& worker) const;

  const Layer& layer() const { return weights().layers.front(); }

  const std::function<void(const base::WorkerRank&)> context_region_;
  const std::function<void(const base::WorkerRank&)> slot_region_;
  SequenceViews views_;
  StepContext step_;

  // The rows that run now.
  std::vector<int32_t> tokens_;  // behind each row
  std::vector<int64_t> positions_;
  std::vector<SequenceRows> sequences_;
  std::vector<kernels::NormRowsJob> streams_;  // normalises the streams that each row reads
  bool in_slots_ = false;   // what the batch's rows are made of lies with the rows that waited
  bool feed_back_ = false;  // the block's own streams, from its last run
};

}  // namespace fulgur::model

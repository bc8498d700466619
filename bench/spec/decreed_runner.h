// A real model whose text and whose drafts' quality are decreed, so that costs are real and
// acceptance is what the experiment asks for.
//
// Text: a function of the sequence's slot and the position, the same in all arms; its tokens are
// spread over the vocabulary, so they draw on all experts. Drafts: the drafter runs as ever, then
// each draft is replaced by the right token with a chance that varies around the decreed rate, and
// the confidence tells that chance.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "engine/model_runner.h"

namespace fulgur::bench_spec {

class DecreedRunner : public engine::ModelRunner {
 public:
  explicit DecreedRunner(std::unique_ptr<engine::ModelRunner> model);

  // rates[k]: the share of rounds in which drafts 0 to k all stand; falling. Empty: the drafter's
  // own drafts.
  void SetRates(std::vector<double> rates) { rates_ = std::move(rates); }

  int64_t VocabSize() const override { return model_->VocabSize(); }
  model::DrafterKind drafter() const override { return model_->drafter(); }
  int64_t MaxDrafts() const override { return model_->MaxDrafts(); }
  absl::Status Forward(const model::StepBatch& batch, std::span<float> logits) override;
  absl::Status Propose(std::span<const model::DraftRows> rows, model::DraftChooser& chooser,
                       model::Drafts& out) override;

 private:
  class Chooser;
  struct Place {
    model::StateSlot slot;
    int64_t position;  // of the first row
  };

  int32_t TokenAt(model::StateSlot slot, int64_t position) const;
  double ChanceAt(model::StateSlot slot, int64_t position, int32_t draft) const;

  const std::unique_ptr<engine::ModelRunner> model_;
  std::vector<double> rates_;
  std::vector<Place> batch_;
  std::vector<float> one_hot_;  // [V]
};

}  // namespace fulgur::bench_spec

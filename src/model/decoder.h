// The main model's layers over one step: embedding, layers, head; and the drafter that follows it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "kv/store.h"
#include "model/draft_model.h"
#include "model/layer_step.h"
#include "model/model.h"

namespace fulgur::model {

class Decoder {
 public:
  Decoder(ModelConfig config, Weights weights, Precision precision, const StepLimits& limits,
          const kernels::OpTable& ops, base::WorkerTeam& team, const kv::Store& store,
          kv::MappedMemory scratch_memory);
  ~Decoder();

  void Forward(const StepBatch& batch, std::span<float> logits);
  void Propose(std::span<const DraftRows> rows, DraftChooser& chooser, Drafts& out);

  const ModelConfig& config() const { return config_; }
  const StepLimits& limits() const { return limits_; }
  int64_t scratch_bytes() const { return scratch_memory_.size(); }

 private:
  void Prepare(const StepBatch& batch, std::span<float> logits);
  void CheckSequence(const SequenceRows& sequence, int64_t next_row) const;

  // In every worker:
  void RunStep(const base::WorkerRank& worker) const;
  SublayerInput InputOf(size_t layer) const;  // that of the head behind the last one
  void WriteCompressedRotations(const base::WorkerRank& worker) const;
  void RunHead(const base::WorkerRank& worker) const;

  const ModelConfig config_;
  const Weights weights_;
  const Precision precision_;
  const StepLimits limits_;
  const kernels::OpTable& ops_;
  base::WorkerTeam& team_;
  const kv::Store& store_;
  const kv::MappedMemory scratch_memory_;
  const Scratch scratch_;
  const std::vector<float> frequencies_;
  const std::vector<float> compressed_frequencies_;
  std::vector<LayerFormats> formats_;
  const std::function<void(const base::WorkerRank&)> region_;
  std::unique_ptr<Drafter> drafter_;  // null: none

  // The step that runs now.
  SequenceViews views_;
  StepContext step_;
  std::vector<int64_t> positions_;   // [T]
  std::vector<int32_t> logit_rows_;  // batch rows whose logits are wanted
  float* logits_ = nullptr;
};

}  // namespace fulgur::model

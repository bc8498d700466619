#include "model/model.h"

#include <utility>

#include "base/check.h"
#include "base/status_macros.h"
#include "model/decoder.h"
#include "model/pending_rows.h"

namespace fulgur::model {

kv::Layout CacheLayout(const ModelConfig& config, Precision precision, int64_t lookahead) {
  const bool native = precision == Precision::kNative;
  kv::LayoutParams params;
  params.ratios.assign(config.compress_ratios.begin(),
                       config.compress_ratios.begin() + config.num_layers);
  params.ratios.resize(static_cast<size_t>(config.num_layers + config.NumDraftLayers()), 0);
  params.head_dim = config.head_dim;
  params.index_head_dim = config.index_head_dim;
  params.sliding_window = config.sliding_window;
  params.lookahead = lookahead;
  params.draft_bytes = PendingRows::Bytes(config);
  params.row_format = native ? kernels::RowFormat::kBf16 : kernels::RowFormat::kF32;
  params.key_format = native ? kernels::RowFormat::kInt8Scaled : kernels::RowFormat::kF32;
  return kv::Layout(params);
}

absl::StatusOr<std::unique_ptr<Model>> Model::Create(ModelConfig config, Weights weights,
                                                     Precision precision, const StepLimits& limits,
                                                     const kernels::OpTable& ops,
                                                     base::WorkerTeam& team,
                                                     const kv::Store& store) {
  CHECK_EQ(static_cast<int64_t>(weights.layers.size()), config.num_layers);
  CHECK_EQ(static_cast<int64_t>(weights.drafter.layers.size()), config.NumDraftLayers());
  const int64_t bytes = ScratchBytes(config, precision, limits, team.size());
  ASSIGN_OR_RETURN(kv::MappedMemory memory, kv::MappedMemory::Create(bytes));
  return std::unique_ptr<Model>(
      new Model(std::make_unique<Decoder>(std::move(config), std::move(weights), precision, limits,
                                          ops, team, store, std::move(memory))));
}

Model::Model(std::unique_ptr<Decoder> decoder) : decoder_(std::move(decoder)) {}

Model::~Model() = default;

const ModelConfig& Model::config() const { return decoder_->config(); }

const StepLimits& Model::limits() const { return decoder_->limits(); }

void Model::Forward(const StepBatch& batch, std::span<float> logits) {
  decoder_->Forward(batch, logits);
}

int64_t Model::max_drafts() const { return MaxDrafts(decoder_->config(), decoder_->limits()); }

void Model::Propose(std::span<const DraftRows> rows, DraftChooser& chooser, Drafts& out) {
  decoder_->Propose(rows, chooser, out);
}

int64_t Model::scratch_bytes() const { return decoder_->scratch_bytes(); }

int64_t Model::ScratchBytes(const ModelConfig& config, Precision precision,
                            const StepLimits& limits, int num_workers) {
  Arena arena(nullptr);
  const Scratch measured(config, precision, limits, num_workers, arena);
  return arena.peak();
}

}  // namespace fulgur::model

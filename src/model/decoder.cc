#include "model/decoder.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "model/rope.h"

namespace fulgur::model {
namespace {

Scratch PlaceScratch(const ModelConfig& config, Precision precision, const StepLimits& limits,
                     int num_workers, const kv::MappedMemory& memory) {
  Arena arena(memory.data());
  return Scratch(config, precision, limits, num_workers, arena);
}

}  // namespace

Decoder::Decoder(ModelConfig config, Weights weights, Precision precision, const StepLimits& limits,
                 const kernels::OpTable& ops, base::WorkerTeam& team, const kv::Store& store,
                 kv::MappedMemory scratch_memory)
    : config_(std::move(config)),
      weights_(std::move(weights)),
      precision_(precision),
      limits_(limits),
      ops_(ops),
      team_(team),
      store_(store),
      scratch_memory_(std::move(scratch_memory)),
      scratch_(PlaceScratch(config_, precision_, limits_, team_.size(), scratch_memory_)),
      frequencies_(RopeFrequencies(config_, false)),
      compressed_frequencies_(RopeFrequencies(config_, true)),
      region_([this](const base::WorkerRank& worker) { RunStep(worker); }),
      views_(store_, 0, config_.num_layers, limits_.max_sequences),
      step_{.config = config_,
            .ops = ops_,
            .scratch = scratch_,
            .views = views_,
            .precision = precision_,
            .frequencies = frequencies_,
            .compressed_frequencies = compressed_frequencies_,
            .tokens = {}} {
  for (const Layer& layer : weights_.layers) formats_.push_back(FormatsOfLayer(layer));
  positions_.reserve(static_cast<size_t>(limits_.max_tokens));
  logit_rows_.reserve(static_cast<size_t>(limits_.max_logit_rows));
  drafter_ = MakeDrafter({.config = config_,
                          .weights = weights_,
                          .precision = precision_,
                          .limits = limits_,
                          .ops = ops_,
                          .team = team_,
                          .store = store_,
                          .scratch = scratch_,
                          .frequencies = frequencies_});
}

Decoder::~Decoder() = default;

void Decoder::Forward(const StepBatch& batch, std::span<float> logits) {
  Prepare(batch, logits);
  team_.Run(region_);
}

void Decoder::Propose(std::span<const DraftRows> rows, DraftChooser& chooser, Drafts& out) {
  CHECK(drafter_ != nullptr);
  drafter_->Propose(rows, chooser, out);
}

void Decoder::CheckSequence(const SequenceRows& sequence, int64_t next_row) const {
  const int64_t end = sequence.first_position + sequence.num_rows;
  CHECK_EQ(sequence.first_row, next_row);
  CHECK_GT(sequence.num_rows, 0);
  CHECK_GE(sequence.first_position, 0);
  CHECK_LE(end, limits_.max_position);
  CHECK_LE(sequence.num_logit_rows, sequence.num_rows);
  CHECK_LT(sequence.slot, store_.num_slots());
  CHECK_GE(static_cast<int64_t>(sequence.pages.size()), kv::Layout::PagesFor(end));
}

void Decoder::Prepare(const StepBatch& batch, std::span<float> logits) {
  CHECK_LE(static_cast<int64_t>(batch.tokens.size()), limits_.max_tokens);
  CHECK_LE(static_cast<int64_t>(batch.sequences.size()), limits_.max_sequences);
  positions_.clear();
  logit_rows_.clear();
  step_.tokens = batch.tokens;
  step_.end_position = 0;
  for (const SequenceRows& sequence : batch.sequences) {
    CheckSequence(sequence, static_cast<int64_t>(positions_.size()));
    for (int32_t i = 0; i < sequence.num_rows; ++i) {
      positions_.push_back(sequence.first_position + i);
      if (i < sequence.num_rows - sequence.num_logit_rows) continue;
      logit_rows_.push_back(sequence.first_row + i);
    }
    step_.end_position = std::max(step_.end_position, sequence.first_position + sequence.num_rows);
  }
  CHECK_EQ(positions_.size(), batch.tokens.size());
  CHECK_LE(static_cast<int64_t>(logit_rows_.size()), limits_.max_logit_rows);
  CHECK_EQ(static_cast<int64_t>(logits.size()),
           static_cast<int64_t>(logit_rows_.size()) * config_.vocab_size);
  logits_ = logits.data();
  views_.Fill(batch.sequences);
  if (drafter_ != nullptr) drafter_->BeginStep(batch);
}

void Decoder::RunStep(const base::WorkerRank& worker) const {
  WriteRotations(step_, positions_, worker);
  WriteCompressedRotations(worker);
  LookUp(step_, weights_.embed, config_.hidden_size, config_.hc_mult, scratch_.streams, worker);
  worker.Barrier();
  EnterSublayer(step_, InputOf(0), nullptr, worker);
  for (int64_t n = 0; n < config_.num_layers; ++n) {
    if (drafter_ != nullptr) drafter_->AfterLayer(n - 1, worker);
    const auto layer = static_cast<size_t>(n);
    RunLayer(step_, weights_.layers[layer], formats_[layer], n, InputOf(layer + 1), worker);
  }
  if (drafter_ != nullptr) drafter_->AfterLayer(config_.num_layers - 1, worker);
  if (!logit_rows_.empty()) RunHead(worker);
}

SublayerInput Decoder::InputOf(size_t layer) const {
  if (layer == weights_.layers.size()) return {.hc = weights_.head_hc};
  return AttentionInput(weights_.layers[layer], formats_[layer]);
}

void Decoder::WriteCompressedRotations(const base::WorkerRank& worker) const {
  const auto [begin, end] = worker.Share(step_.rows());
  for (int64_t row = begin; row < end; ++row) {
    WriteRotation(positions_[static_cast<size_t>(row)], compressed_frequencies_,
                  scratch_.compressed_rotation + row * config_.rope_dim);
  }
}

void Decoder::RunHead(const base::WorkerRank& worker) const {
  const auto rows = static_cast<int64_t>(logit_rows_.size());
  kernels::HcPreArgs args = CollapseArgs(step_, weights_.head_hc, weights_.norm);
  args.stream_rows = logit_rows_.data();
  args.rows = rows;
  args.out = scratch_.head_input.Out(FormatsOf({&weights_.head}));
  args.out.f32 = scratch_.head_input.f32;
  ops_.hc_pre(args, worker);
  worker.Barrier();
  kernels::LinearJob job;
  job.weight = &weights_.head;
  job.x = scratch_.head_input.View(rows, config_.hidden_size);
  job.y = logits_;
  ops_.linear({&job, 1}, worker);
}

}  // namespace fulgur::model

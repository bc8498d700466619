#include "model/dspark_drafter.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace fulgur::model {

DsparkDrafter::DsparkDrafter(const ModelParts& parts)
    : Drafter(parts),
      context_region_([this](const base::WorkerRank& worker) {
        WriteContext(worker);
        if (block_.tokens.empty()) return;
        worker.Barrier();
        RunBlocks(worker);
        RunHead(worker);
      }),
      chain_region_([this](const base::WorkerRank& worker) { RunChain(worker); }),
      context_views_(parts.store, parts.config.num_layers, parts.config.num_draft_blocks,
                     parts.limits.max_sequences),
      context_(MakeStep(context_views_)),
      block_views_(parts.store, parts.config.num_layers, parts.config.num_draft_blocks,
                   parts.limits.max_sequences),
      block_(MakeStep(block_views_)),
      chain_(MakeStep(block_views_)) {
  block_.whole_block = true;
  for (const Layer& stage : weights().layers) key_inputs_.Add(stage.attention.wkv);
  const auto sequences = static_cast<size_t>(parts.limits.max_sequences);
  const auto rows = static_cast<size_t>(KeyRows(config_, parts.limits));
  const auto block_rows = sequences * static_cast<size_t>(config_.dspark.block_size);
  no_tokens_.resize(rows);
  captured_.reserve(sequences);
  context_positions_.reserve(rows);
  context_sequences_.reserve(sequences);
  features_.reserve(sequences);
  key_jobs_.resize(weights().layers.size());
  block_tokens_.reserve(block_rows);
  block_positions_.reserve(block_rows);
  block_sequences_.reserve(sequences);
  draft_rows_.reserve(block_rows);
  first_draft_.reserve(sequences);
  previous_.reserve(sequences);
}

// Rows whose logits are wanted may be drafts; of those that stand, the window's last keys can be
// read.
void DsparkDrafter::BeginStep(const StepBatch& batch) {
  Drafter::BeginStep(batch);
  captured_.clear();
  int64_t place = 0;
  for (const SequenceRows& sequence : batch.sequences) {
    const int64_t count =
        std::min<int64_t>(sequence.num_rows, config_.sliding_window + sequence.num_logit_rows);
    captured_.push_back({sequence.first_row + sequence.num_rows - count, count, place});
    place += count;
  }
  CHECK_LE(place, ContextRows(config_, parts_.limits));
}

// The mean over the streams of each captured row, beside those of the other target layers.
void DsparkDrafter::AfterLayer(int64_t layer, const base::WorkerRank& worker) const {
  const auto& targets = config_.dspark.target_layers;
  const auto target = std::find(targets.begin(), targets.end(), layer);
  if (target == targets.end()) return;
  const int64_t hidden = config_.hidden_size;
  const int64_t s = config_.hc_mult;
  const float part = 1.0F / static_cast<float>(s);
  const auto [begin, end] = worker.Share(hidden);
  for (const Captured& rows : captured_) {
    for (int64_t i = 0; i < rows.num_rows; ++i) {
      const float* streams = scratch_.streams + (rows.first_row + i) * s * hidden;
      float* mean = scratch_.draft.captured + (rows.place + i) * feature_width() +
                    (target - targets.begin()) * hidden;
      std::copy(streams + begin, streams + end, mean + begin);
      for (int64_t j = 1; j < s; ++j) {
        for (int64_t d = begin; d < end; ++d) mean[d] += streams[j * hidden + d];
      }
      for (int64_t d = begin; d < end; ++d) mean[d] *= part;
    }
  }
}

void DsparkDrafter::WriteWaiting(std::span<const WaitingRows> waiting) {
  ClearContext();
  for (const WaitingRows& rows : waiting) {
    AddContext(*rows.sequence, rows.inputs, rows.position, rows.count);
  }
  FinishContext();
  block_.tokens = {};
  parts_.team.Run(context_region_);
}

void DsparkDrafter::RunContext(std::span<const DraftRows> rows) {
  ClearContext();
  for (const DraftRows& request : rows) {
    if (request.num_drafts == 0) continue;
    const int64_t first = FirstInWindow(request);
    const SequenceRows& sequence = SequenceOf(request);
    AddContext(sequence, Inputs(request, first), sequence.first_position + first,
               request.num_accepted - first);
  }
  FinishContext();
  ArrangeBlocks(rows);
  parts_.team.Run(context_region_);
}

const float* DsparkDrafter::Inputs(const DraftRows& rows, int64_t row) const {
  const Captured& captured = captured_[static_cast<size_t>(rows.sequence)];
  const int64_t offset = SequenceOf(rows).first_row + row - captured.first_row;
  CHECK_GE(offset, 0);
  return scratch_.draft.captured + (captured.place + offset) * feature_width();
}

void DsparkDrafter::ClearContext() {
  context_positions_.clear();
  context_sequences_.clear();
  features_.clear();
}

void DsparkDrafter::AddContext(const SequenceRows& sequence, const float* features,
                               int64_t position, int64_t count) {
  const auto place = static_cast<int64_t>(context_positions_.size());
  kernels::NormRowsJob gather;
  gather.x = features;
  gather.rows = count;
  gather.cols = feature_width();
  gather.out = scratch_.draft.inputs.Out(FormatsOf({&weights().main_proj}), place, feature_width());
  features_.push_back(gather);
  context_sequences_.push_back(MakeRows(sequence, position, place, count));
  for (int64_t i = 0; i < count; ++i) context_positions_.push_back(position + i);
}

void DsparkDrafter::FinishContext() {
  CHECK_LE(static_cast<int64_t>(context_positions_.size()), KeyRows(config_, parts_.limits));
  context_views_.Fill(context_sequences_);
  context_.tokens = std::span(no_tokens_).first(context_positions_.size());
  const auto num_rows = static_cast<int64_t>(context_positions_.size());
  for (size_t stage = 0; stage < key_jobs_.size(); ++stage) {
    const int64_t place = static_cast<int64_t>(stage) * num_rows * config_.head_dim;
    key_jobs_[stage] = {
        .attention = &weights().layers[stage].attention,
        .rings = context_views_.layer(static_cast<int64_t>(stage)).window_rings,
        .projected = scratch_.draft.keys + place,
        .rows = scratch_.draft.key_rows + place * static_cast<int64_t>(sizeof(float))};
  }
}

// The anchor, then noise.
void DsparkDrafter::ArrangeBlocks(std::span<const DraftRows> rows) {
  block_tokens_.clear();
  block_positions_.clear();
  block_sequences_.clear();
  draft_rows_.clear();
  first_draft_.clear();
  const auto width = static_cast<int32_t>(config_.dspark.block_size);
  for (const Drafting& d : drafting(0)) {
    const DraftRows& request = rows[static_cast<size_t>(d.request)];
    const auto first_row = static_cast<int32_t>(block_tokens_.size());
    block_sequences_.push_back(
        MakeRows(SequenceOf(request), NextPosition(request), first_row, width));
    first_draft_.push_back(static_cast<int64_t>(draft_rows_.size()));
    for (int32_t i = 0; i < width; ++i) {
      block_tokens_.push_back(i == 0 ? request.next_token : config_.dspark.noise_token);
      block_positions_.push_back(NextPosition(request) + i);
      if (i < d.num_drafts) draft_rows_.push_back(first_row + i);
    }
  }
  block_.tokens = block_tokens_;
  block_views_.Fill(block_sequences_);
}

// Keys of the rows that stand, the same input for all stages: RMSNorm(main_proj means).
void DsparkDrafter::WriteContext(const base::WorkerRank& worker) const {
  const DraftScratch& draft = scratch_.draft;
  WriteRotations(context_, context_positions_, worker);
  parts_.ops.norm_rows(features_, worker);
  worker.Barrier();
  LinearJobs jobs(context_, worker);
  jobs.Add(weights().main_proj, draft.inputs, draft.mixed);
  jobs.Run();
  worker.Barrier();
  kernels::NormRowsJob norm;
  norm.x = draft.mixed;
  norm.rows = context_.rows();
  norm.cols = config_.hidden_size;
  norm.weight = weights().main_norm.data();
  norm.eps = config_.rms_norm_eps;
  norm.out = draft.mixed_rows.Out(key_inputs_);
  parts_.ops.norm_rows({&norm, 1}, worker);
  worker.Barrier();
  WriteKeys(context_, key_jobs_, draft.mixed_rows, worker);
}

void DsparkDrafter::RunBlocks(const base::WorkerRank& worker) const {
  WriteRotations(block_, block_positions_, worker);
  LookUp(block_, embedding(), config_.hidden_size, config_.hc_mult, scratch_.streams, worker);
  worker.Barrier();
  EnterSublayer(block_, InputOf(0), nullptr, worker);
  for (size_t stage = 0; stage < weights().layers.size(); ++stage) {
    RunLayer(block_, weights().layers[stage], formats_[stage], static_cast<int64_t>(stage),
             InputOf(stage + 1), worker);
  }
}

SublayerInput DsparkDrafter::InputOf(size_t stage) const {
  if (stage == weights().layers.size()) return {.hc = weights().head_hc};
  return AttentionInput(weights().layers[stage], formats_[stage]);
}

// Logits before the chain's part, and the rows that the confidence head reads.
void DsparkDrafter::RunHead(const base::WorkerRank& worker) const {
  const auto rows = static_cast<int64_t>(draft_rows_.size());
  kernels::HcPreArgs args = CollapseArgs(block_, weights().head_hc, weights().norm);
  args.stream_rows = draft_rows_.data();
  args.rows = rows;
  args.collapsed = scratch_.draft.collapsed;
  args.out = scratch_.head_input.Out(FormatsOf({&head()}));
  args.out.f32 = scratch_.head_input.f32;
  parts_.ops.hc_pre(args, worker);
  worker.Barrier();
  kernels::LinearJob job;
  job.weight = &head();
  job.x = scratch_.head_input.View(rows, config_.hidden_size);
  job.y = scratch_.draft.logits;
  parts_.ops.linear({&job, 1}, worker);
}

void DsparkDrafter::RunSlot(int32_t slot) {
  slot_ = slot;
  previous_.clear();
  for (const Drafting& d : drafting(slot)) previous_.push_back(d.previous);
  chain_.tokens = previous_;
  parts_.team.Run(chain_region_);
}

// logits += markov_w2 markov_w1[previous]
void DsparkDrafter::RunChain(const base::WorkerRank& worker) const {
  const DraftScratch& draft = scratch_.draft;
  const int64_t rows = chain_.rows();
  const int64_t rank = config_.dspark.markov_rank;
  LookUp(chain_, weights().markov_w1, rank, 1, draft.markov, worker);
  worker.Barrier();
  kernels::NormRowsJob convert;
  convert.x = draft.markov;
  convert.rows = rows;
  convert.cols = rank;
  convert.out = draft.markov_rows.Out(FormatsOf({&weights().markov_w2}));
  parts_.ops.norm_rows({&convert, 1}, worker);
  worker.Barrier();
  LinearJobs jobs(chain_, worker);
  jobs.Add(weights().markov_w2, draft.markov_rows, draft.bias);
  jobs.Run();
  worker.Barrier();
  const int64_t vocabulary = config_.vocab_size;
  const auto [begin, end] = worker.Share(vocabulary);
  for (int64_t row = 0; row < rows; ++row) {
    float* logits = draft.logits + DraftRow(static_cast<size_t>(row), slot_) * vocabulary;
    const float* bias = draft.bias + row * vocabulary;
    for (int64_t i = begin; i < end; ++i) logits[i] += bias[i];
  }
}

const float* DsparkDrafter::Logits(size_t drafting, int32_t slot) const {
  return scratch_.draft.logits + DraftRow(drafting, slot) * config_.vocab_size;
}

// sigmoid(w [z; markov_w1[previous]]): the head has not seen the token.
float DsparkDrafter::Confidence(size_t drafting, int32_t slot, int32_t /*token*/) const {
  const float* z = scratch_.draft.collapsed + DraftRow(drafting, slot) * config_.hidden_size;
  const float* e =
      scratch_.draft.markov + static_cast<int64_t>(drafting) * config_.dspark.markov_rank;
  const float* w = weights().confidence.data();
  double sum = 0.0;
  for (int64_t i = 0; i < config_.hidden_size; ++i) {
    sum += static_cast<double>(w[i]) * static_cast<double>(z[i]);
  }
  for (int64_t i = 0; i < config_.dspark.markov_rank; ++i) {
    sum += static_cast<double>(w[config_.hidden_size + i]) * static_cast<double>(e[i]);
  }
  return static_cast<float>(1.0 / (1.0 + std::exp(-sum)));
}

}  // namespace fulgur::model

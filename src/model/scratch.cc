#include "model/scratch.h"

#include <algorithm>

#include "model/model.h"

namespace fulgur::model {
namespace {

constexpr int64_t kLine = 64;

// Scores of at most this many (row, key) pairs are kept at once, unless one row alone needs more.
constexpr int64_t kIndexScores = int64_t{1} << 24;

// A DSpark step runs the whole block of every sequence; keys of rows that waited are written along.
StepLimits WithDraftRows(const ModelConfig& config, StepLimits limits) {
  if (config.drafter == DrafterKind::kNone) return limits;
  const bool dspark = config.drafter == DrafterKind::kDspark;
  const int64_t rows = limits.max_sequences * (dspark ? config.dspark.block_size : 1);
  limits.max_tokens = std::max({limits.max_tokens, rows, KeyRows(config, limits)});
  limits.max_logit_rows = std::max(limits.max_logit_rows, rows);
  return limits;
}

bool HasIndexer(const ModelConfig& config) {
  const auto begin = config.compress_ratios.begin();
  return std::find(begin, begin + config.num_layers, kv::kOverlapRatio) !=
         begin + config.num_layers;
}

}  // namespace

std::byte* Arena::TakeBytes(int64_t bytes) {
  std::byte* piece = base_ == nullptr ? nullptr : base_ + used_;
  used_ += (bytes + kLine - 1) / kLine * kLine;
  peak_ = std::max(peak_, used_);
  return piece;
}

void Formats::Add(const kernels::PackedLinear& weight) {
  switch (kernels::ActivationOf(weight.format)) {
    case kernels::ActivationFormat::kF32:
      f32 = true;
      return;
    case kernels::ActivationFormat::kBf16:
      bf16 = true;
      return;
    case kernels::ActivationFormat::kInt8:
      int8 = true;
      return;
  }
}

Formats FormatsOf(std::initializer_list<const kernels::PackedLinear*> weights) {
  Formats formats;
  for (const kernels::PackedLinear* weight : weights) {
    if (weight->out > 0) formats.Add(*weight);
  }
  return formats;
}

kernels::RowsOut ActivationBuffer::Out(const Formats& wanted) const {
  kernels::RowsOut out;
  if (wanted.f32) out.f32 = f32;
  if (wanted.bf16) out.bf16 = bf16;
  if (wanted.int8) {
    out.int8 = int8;
    out.int8_scale = int8_scale;
  }
  return out;
}

kernels::RowsOut ActivationBuffer::Out(const Formats& wanted, int64_t row, int64_t cols) const {
  kernels::RowsOut out = Out(wanted);
  if (wanted.f32) out.f32 += row * cols;
  if (wanted.bf16) out.bf16 += row * cols;
  if (wanted.int8) {
    out.int8 += row * cols;
    out.int8_scale += row;
  }
  return out;
}

kernels::ActivationRows ActivationBuffer::View(int64_t rows, int64_t cols) const {
  return {rows, cols, f32, bf16, int8, int8_scale};
}

int64_t ContextRows(const ModelConfig& config, const StepLimits& limits) {
  return std::min(limits.max_tokens,
                  limits.max_sequences * config.sliding_window + limits.max_logit_rows);
}

int64_t KeyRows(const ModelConfig& config, const StepLimits& limits) {
  return std::min(limits.max_tokens, limits.max_sequences * config.sliding_window);
}

int64_t DraftInputs(const ModelConfig& config) {
  if (config.drafter == DrafterKind::kMtp) return config.hc_mult * config.hidden_size;
  return static_cast<int64_t>(config.dspark.target_layers.size()) * config.hidden_size;
}

int64_t MaxDrafts(const ModelConfig& config, const StepLimits& limits) {
  if (config.drafter == DrafterKind::kNone) return 0;
  const bool dspark = config.drafter == DrafterKind::kDspark;
  return dspark ? std::min(limits.max_drafts, config.dspark.block_size) : limits.max_drafts;
}

Scratch::Scratch(const ModelConfig& config, Precision precision, const StepLimits& limits,
                 int num_workers, Arena& arena)
    : precision_(precision) {
  const StepLimits largest = WithDraftRows(config, limits);
  PlaceStep(config, largest, arena);
  PlaceSharedRows(config, num_workers, arena);
  if (config.drafter == DrafterKind::kDspark) {
    draft.captured = arena.Take<float>(ContextRows(config, limits) * DraftInputs(config));
  }
  const int64_t shared = arena.mark();
  PlaceAttention(config, largest, arena);
  arena.Rewind(shared);
  PlaceExperts(config, largest, num_workers, arena);
  if (config.drafter == DrafterKind::kNone) return;
  arena.Rewind(shared);
  PlaceDraft(config, limits, arena);
  arena.Rewind(shared);
  PlaceDraftHead(config, limits, arena);
}

ActivationBuffer Scratch::Rows(int64_t rows, int64_t cols, Arena& arena) const {
  ActivationBuffer buffer;
  buffer.f32 = arena.Take<float>(rows * cols);
  if (precision_ == Precision::kReference) return buffer;
  buffer.bf16 = arena.Take<tensor::BFloat16>(rows * cols);
  buffer.int8 = arena.Take<int8_t>(rows * cols);
  buffer.int8_scale = arena.Take<float>(rows);
  return buffer;
}

void Scratch::PlaceStep(const ModelConfig& config, const StepLimits& limits, Arena& arena) {
  const int64_t rows = limits.max_tokens;
  const int64_t s = config.hc_mult;
  const int64_t mixes = s * (2 + s);
  streams = arena.Take<float>(rows * s * config.hidden_size);
  o = arena.Take<float>(rows * config.hidden_size);
  post_comb = arena.Take<float>(rows * (s + s * s));
  partials = arena.Take<float>(rows * kernels::HcSlices(config.hidden_size) * (mixes + 1));
  x = Rows(rows, config.hidden_size, arena);
  rotation = arena.Take<float>(rows * config.rope_dim);
  compressed_rotation = arena.Take<float>(rows * config.rope_dim);
  head_input = Rows(limits.max_logit_rows, config.hidden_size, arena);
}

// Nothing else may lie where the counts are, which are zeros from step to step.
void Scratch::PlaceSharedRows(const ModelConfig& config, int num_workers, Arena& arena) {
  const int64_t groups = num_workers * kernels::SharedRows::HeadGroups(config.num_heads);
  shared_rows.finished = arena.Take<int32_t>(groups);
  shared_rows.states = arena.Take<float>(groups * kernels::kMaxKeyParts *
                                         kernels::SharedRows::StateFloats(config.head_dim));
}

void Scratch::PlaceAttention(const ModelConfig& config, const StepLimits& limits, Arena& arena) {
  const int64_t rows = limits.max_tokens;
  const int64_t width = config.num_heads * config.head_dim;
  q_latent = arena.Take<float>(rows * config.q_lora_rank);
  q_latent_rows = Rows(rows, config.q_lora_rank, arena);
  kv = arena.Take<float>(rows * config.head_dim);
  window_rows = arena.Take<std::byte>(rows * config.head_dim * static_cast<int64_t>(sizeof(float)));
  compressor_rows = arena.Take<float>(rows * 4 * config.head_dim);
  q = arena.Take<float>(rows * width);
  PlaceIndex(config, limits, arena);
  attended = Rows(rows * config.o_groups, width / config.o_groups, arena);
  grouped = arena.Take<float>(rows * config.o_groups * config.o_lora_rank);
  grouped_rows = Rows(rows, config.o_groups * config.o_lora_rank, arena);
}

void Scratch::PlaceIndex(const ModelConfig& config, const StepLimits& limits, Arena& arena) {
  const int64_t rows = HasIndexer(config) ? limits.max_tokens : 0;
  const int64_t heads = config.index_heads;
  index_compressor_rows = arena.Take<float>(rows * 4 * config.index_head_dim);
  index_weights = arena.Take<float>(rows * heads);
  index_q = arena.Take<float>(rows * heads * config.index_head_dim);
  const int64_t keys = limits.max_position / kv::kOverlapRatio;
  index_score_count = std::min(rows * keys, std::max(keys, kIndexScores));
  index_scores = arena.Take<float>(index_score_count);
}

void Scratch::PlaceDraft(const ModelConfig& config, const StepLimits& limits, Arena& arena) {
  const int64_t rows = KeyRows(config, limits);
  const int64_t h = config.hidden_size;
  if (config.drafter == DrafterKind::kDspark) {
    draft.inputs = Rows(rows, h * static_cast<int64_t>(config.dspark.target_layers.size()), arena);
  } else {
    draft.inputs = Rows(rows * config.hc_mult, h, arena);
  }
  draft.mixed = arena.Take<float>(rows * h);
  draft.mixed_rows = Rows(rows, h, arena);
  const int64_t keys = rows * config.num_draft_blocks * config.head_dim;
  draft.keys = arena.Take<float>(keys);
  draft.key_rows = arena.Take<std::byte>(keys * static_cast<int64_t>(sizeof(float)));
}

void Scratch::PlaceDraftHead(const ModelConfig& config, const StepLimits& limits, Arena& arena) {
  const int64_t sequences = limits.max_sequences;
  const bool dspark = config.drafter == DrafterKind::kDspark;
  const int64_t drafts = sequences * (dspark ? MaxDrafts(config, limits) : 1);
  draft.logits = arena.Take<float>(drafts * config.vocab_size);
  if (!dspark) return;
  draft.collapsed = arena.Take<float>(drafts * config.hidden_size);
  draft.markov = arena.Take<float>(sequences * config.dspark.markov_rank);
  draft.markov_rows = Rows(sequences, config.dspark.markov_rank, arena);
  draft.bias = arena.Take<float>(sequences * config.vocab_size);
}

void Scratch::PlaceExperts(const ModelConfig& config, const StepLimits& limits, int num_workers,
                           Arena& arena) {
  const int64_t rows = limits.max_tokens;
  const int64_t slots = rows * (config.experts_per_token + config.num_shared_experts);
  router_logits = arena.Take<float>(rows * config.num_experts);
  experts = arena.Take<int32_t>(rows * config.experts_per_token);
  expert_weights = arena.Take<float>(rows * config.experts_per_token);
  h = arena.Take<float>(slots * config.expert_size);
  h_rows = Rows(slots, config.expert_size, arena);
  for (int worker = 0; worker < num_workers; ++worker) {
    ExpertGrouping group;
    group.tasks = arena.Take<kernels::ExpertTask>(config.num_experts + config.num_shared_experts);
    group.slot_row = arena.Take<int32_t>(slots);
    group.slot_weight = arena.Take<float>(slots);
    group.expert_end = arena.Take<int32_t>(config.num_experts);
    grouping.push_back(group);
  }
}

}  // namespace fulgur::model

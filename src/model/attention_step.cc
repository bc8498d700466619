#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

#include "model/layer_step.h"

namespace fulgur::model {
namespace {

// The window's keys: the projected rows through RMSNorm and rotation.
void MakeKeys(const StepContext& step, const KeyJob& job, const float* rotation,
              const base::WorkerRank& worker) {
  kernels::HeadRowsJob key;
  key.x = job.projected;
  key.rows = step.rows();
  key.heads = 1;
  key.dim = step.config.head_dim;
  key.transform.normalize = true;
  key.transform.weight = job.attention->kv_norm.data();
  key.transform.eps = step.config.rms_norm_eps;
  key.transform.rope = rotation;
  key.transform.rope_dim = step.config.rope_dim;
  if (step.precision == Precision::kNative) {
    key.out.bf16 = reinterpret_cast<tensor::BFloat16*>(job.rows);
  } else {
    key.out.f32 = reinterpret_cast<float*>(job.rows);
  }
  step.ops.head_rows({&key, 1}, worker);
}

// The regions of one layer's attention.
class AttentionStep {
 public:
  AttentionStep(const StepContext& step, const Layer& layer, int64_t index,
                const base::WorkerRank& worker)
      : step_(step),
        config_(step.config),
        ops_(step.ops),
        scratch_(step.scratch),
        weights_(layer.attention),
        views_(step.views.layer(index)),
        worker_(worker),
        rows_(step.rows()),
        ratio_(views_.ratio),
        native_(step.precision == Precision::kNative) {}

  void Run() {
    ProjectInputs();
    EndRegion(worker_, rows_ * config_.q_lora_rank,
              [this](const base::WorkerRank& sharing) { MakeLatents(sharing); });

    ProjectQueries();
    MakeWindowKeys();
    CompressAll();
    worker_.Barrier();

    Attend();
    EndAttention();

    ProjectGroups();
    if (!step_.whole_block) WriteRings();
    EndGroups();

    ProjectOutput();
  }

 private:
  void ProjectInputs();
  void MakeLatents(const base::WorkerRank& worker);
  void ProjectQueries();
  void MakeWindowKeys();
  void CompressAll();
  void Attend();
  void EndAttention();
  void ProjectGroups();
  void WriteRings();
  void EndGroups();
  void ProjectOutput();

  void ProjectCompressor(LinearJobs& jobs, const Compressor& compressor, float* rows) const;
  void CompressBlocks(const Compressor& compressor,
                      std::span<const kernels::CompressSequence> sequences, const float* rows,
                      bool indexer);
  void QuantizeAttended(const base::WorkerRank& worker);
  kernels::IndexArgs MakeIndexArgs() const;
  kernels::AttentionArgs MakeAttentionArgs() const;

  bool has_indexer() const { return weights_.indexer.wq_b.out > 0; }
  // Whether some row sees more entries than the indexer may choose; otherwise all are taken.
  bool choosing() const {
    return has_indexer() && step_.end_position / ratio_ > config_.index_topk;
  }
  // Rotating queries and keys alike spreads outliers before they are rounded to int8 and changes
  // no product.
  bool hadamard() const {
    return native_ && std::has_single_bit(static_cast<uint64_t>(config_.index_head_dim));
  }
  const float* rotation() const {
    return ratio_ > 0 ? scratch_.compressed_rotation : scratch_.rotation;
  }
  Formats group_formats() const { return FormatsOf({weights_.wo_a.data()}); }
  kernels::RowFormat row_format() const {
    return native_ ? kernels::RowFormat::kBf16 : kernels::RowFormat::kF32;
  }
  int64_t group_width() const { return config_.num_heads * config_.head_dim / config_.o_groups; }

  const StepContext& step_;
  const ModelConfig& config_;
  const kernels::OpTable& ops_;
  const Scratch& scratch_;
  const Attention& weights_;
  const LayerViews& views_;
  const base::WorkerRank& worker_;
  const int64_t rows_;
  const int64_t ratio_;
  const bool native_;
};

// One pass over x: latents of queries and keys, and what compression and index need.
void AttentionStep::ProjectInputs() {
  LinearJobs jobs(step_, worker_);
  jobs.Add(weights_.wq_a, scratch_.x, scratch_.q_latent);
  jobs.Add(weights_.wkv, scratch_.x, scratch_.kv);
  if (ratio_ > 0) ProjectCompressor(jobs, weights_.compressor, scratch_.compressor_rows);
  if (has_indexer()) {
    ProjectCompressor(jobs, weights_.indexer.compressor, scratch_.index_compressor_rows);
    jobs.Add(weights_.indexer.weights_proj, scratch_.x, scratch_.index_weights);
  }
  jobs.Run();
}

// A row is the kv projection, then the gate projection.
void AttentionStep::ProjectCompressor(LinearJobs& jobs, const Compressor& compressor,
                                      float* rows) const {
  const int64_t cols = compressor.wkv.out;
  jobs.Add(compressor.wkv, scratch_.x, rows, 2 * cols);
  jobs.Add(compressor.wgate, scratch_.x, rows + cols, 2 * cols);
}

void AttentionStep::MakeLatents(const base::WorkerRank& worker) {
  kernels::NormRowsJob latent;
  latent.x = scratch_.q_latent;
  latent.rows = rows_;
  latent.cols = config_.q_lora_rank;
  latent.weight = weights_.q_norm.data();
  latent.eps = config_.rms_norm_eps;
  latent.out = scratch_.q_latent_rows.Out(FormatsOf({&weights_.wq_b, &weights_.indexer.wq_b}));
  ops_.norm_rows({&latent, 1}, worker);
}

void AttentionStep::MakeWindowKeys() {
  MakeKeys(step_, {.attention = &weights_, .projected = scratch_.kv, .rows = scratch_.window_rows},
           rotation(), worker_);
}

void AttentionStep::CompressAll() {
  if (ratio_ > 0) {
    CompressBlocks(weights_.compressor, views_.compress, scratch_.compressor_rows, false);
  }
  if (has_indexer()) {
    CompressBlocks(weights_.indexer.compressor, views_.index_compress,
                   scratch_.index_compressor_rows, true);
  }
}

void AttentionStep::CompressBlocks(const Compressor& compressor,
                                   std::span<const kernels::CompressSequence> sequences,
                                   const float* rows, bool indexer) {
  kernels::CompressArgs args;
  args.sequences = sequences;
  args.rows = rows;
  args.ratio = ratio_;
  args.dim = static_cast<int64_t>(compressor.norm.size());
  args.overlap = compressor.wkv.out == 2 * args.dim;
  args.ape = compressor.ape.data();
  args.norm_weight = compressor.norm.data();
  args.eps = config_.rms_norm_eps;
  args.rope_freqs = step_.compressed_frequencies.data();
  args.rope_dim = config_.rope_dim;
  args.hadamard = indexer && hadamard();
  args.format = indexer && native_ ? kernels::RowFormat::kInt8Scaled : row_format();
  ops_.compress(args, worker_);
}

void AttentionStep::ProjectQueries() {
  LinearJobs jobs(step_, worker_);
  jobs.Add(weights_.wq_b, scratch_.q_latent_rows, scratch_.q);
  if (choosing()) jobs.Add(weights_.indexer.wq_b, scratch_.q_latent_rows, scratch_.index_q);
  jobs.Run();
}

kernels::IndexArgs AttentionStep::MakeIndexArgs() const {
  kernels::IndexArgs args;
  args.sequences = views_.index;
  args.q = scratch_.index_q;
  args.query.rope = rotation();
  args.query.rope_dim = config_.rope_dim;
  args.query.hadamard = hadamard();
  args.key_format = native_ ? kernels::RowFormat::kInt8Scaled : kernels::RowFormat::kF32;
  args.weights = scratch_.index_weights;
  args.heads = config_.index_heads;
  args.dim = config_.index_head_dim;
  args.weight_scale = 1.0F / std::sqrt(static_cast<float>(args.heads * args.dim));
  args.ratio = ratio_;
  args.topk = config_.index_topk;
  args.scores = scratch_.index_scores;
  args.scores_stride = step_.end_position / ratio_;
  return args;
}

kernels::AttentionArgs AttentionStep::MakeAttentionArgs() const {
  const bool bf16 = group_formats().bf16;
  kernels::AttentionArgs args;
  args.sequences = views_.attention;
  args.row_end = rows_;
  args.q = scratch_.q;
  args.query.normalize = true;
  args.query.eps = config_.rms_norm_eps;
  args.query.rope = rotation();
  args.query.rope_dim = config_.rope_dim;
  args.new_rows = scratch_.window_rows;
  args.format = row_format();
  args.heads = config_.num_heads;
  args.dim = config_.head_dim;
  args.window = config_.sliding_window;
  args.whole_range = step_.whole_block;
  args.ratio = ratio_;
  args.sink = weights_.sink.data();
  args.scale = 1.0F / std::sqrt(static_cast<float>(config_.head_dim));
  args.shared = scratch_.shared_rows;
  args.out_f32 = bf16 ? nullptr : scratch_.attended.f32;
  args.out_bf16 = bf16 ? scratch_.attended.bf16 : nullptr;
  return args;
}

// Where an index chooses, as many rows at a time as there is room for scores.
void AttentionStep::Attend() {
  kernels::AttentionArgs attention = MakeAttentionArgs();
  if (!choosing()) return ops_.sparse_attention(attention, worker_);
  kernels::IndexArgs index = MakeIndexArgs();
  attention.index = &index;
  const int64_t block = scratch_.index_score_count / index.scores_stride;
  for (int64_t row = 0; row < rows_; row += block) {
    if (row > 0) worker_.Barrier();
    index.row_begin = attention.row_begin = row;
    index.row_end = attention.row_end = std::min(row + block, rows_);
    ops_.index_scores(index, worker_);
    worker_.Barrier();
    ops_.sparse_attention(attention, worker_);
  }
}

void AttentionStep::EndAttention() {
  if (!group_formats().int8) return worker_.Barrier();
  EndRegion(worker_, rows_ * config_.num_heads * config_.head_dim,
            [this](const base::WorkerRank& sharing) { QuantizeAttended(sharing); });
}

// Each row of each group has a scale.
void AttentionStep::QuantizeAttended(const base::WorkerRank& worker) {
  const int64_t width = group_width();
  for (int64_t g = 0; g < config_.o_groups; ++g) {
    kernels::NormRowsJob quantize;
    quantize.x = scratch_.attended.f32 + g * width;
    quantize.x_stride = config_.num_heads * config_.head_dim;
    quantize.rows = rows_;
    quantize.cols = width;
    quantize.out.int8 = scratch_.attended.int8 + g * rows_ * width;
    quantize.out.int8_scale = scratch_.attended.int8_scale + g * rows_;
    ops_.norm_rows({&quantize, 1}, worker);
  }
}

// Each group of heads through its own matrix.
void AttentionStep::ProjectGroups() {
  const int64_t width = group_width();
  const Formats formats = group_formats();
  LinearJobs jobs(step_, worker_);
  for (int64_t g = 0; g < config_.o_groups; ++g) {
    kernels::LinearJob job;
    job.weight = &weights_.wo_a[static_cast<size_t>(g)];
    job.x.rows = rows_;
    job.x.cols = width;
    if (formats.int8) {
      job.x.int8 = scratch_.attended.int8 + g * rows_ * width;
      job.x.int8_scale = scratch_.attended.int8_scale + g * rows_;
    } else {
      if (formats.f32) job.x.f32 = scratch_.attended.f32 + g * width;
      if (formats.bf16) job.x.bf16 = scratch_.attended.bf16 + g * width;
      job.x_stride = config_.num_heads * config_.head_dim;
    }
    job.y = scratch_.grouped + g * config_.o_lora_rank;
    job.y_stride = config_.o_groups * config_.o_lora_rank;
    jobs.Add(job);
  }
  jobs.Run();
}

// Nothing reads older positions any more once attention is done.
void AttentionStep::WriteRings() {
  const std::array<kernels::RingWriteJob, 3> jobs = {
      {{views_.window_rings, scratch_.window_rows},
       {views_.compressor_rings, reinterpret_cast<const std::byte*>(scratch_.compressor_rows)},
       {views_.index_compressor_rings,
        reinterpret_cast<const std::byte*>(scratch_.index_compressor_rows)}}};
  ops_.write_rings(jobs, worker_);
}

// The groups' rows in the format that the output projection reads.
void AttentionStep::EndGroups() {
  const Formats formats = FormatsOf({&weights_.wo_b});
  if (formats.f32) return worker_.Barrier();
  kernels::NormRowsJob convert;
  convert.x = scratch_.grouped;
  convert.rows = rows_;
  convert.cols = config_.o_groups * config_.o_lora_rank;
  convert.out = scratch_.grouped_rows.Out(formats);
  EndRegion(worker_, convert.rows * convert.cols, [&](const base::WorkerRank& sharing) {
    ops_.norm_rows({&convert, 1}, sharing);
  });
}

void AttentionStep::ProjectOutput() {
  ActivationBuffer rows = scratch_.grouped_rows;
  rows.f32 = scratch_.grouped;
  LinearJobs jobs(step_, worker_);
  jobs.Add(weights_.wo_b, rows, scratch_.o);
  jobs.Run();
}

}  // namespace

void RunAttention(const StepContext& step, const Layer& layer, int64_t index,
                  const base::WorkerRank& worker) {
  AttentionStep(step, layer, index, worker).Run();
}

void WriteKeys(const StepContext& step, std::span<const KeyJob> jobs, const ActivationBuffer& x,
               const base::WorkerRank& worker) {
  LinearJobs projections(step, worker);
  for (const KeyJob& job : jobs) projections.Add(job.attention->wkv, x, job.projected);
  projections.Run();
  worker.Barrier();
  for (const KeyJob& job : jobs) MakeKeys(step, job, step.scratch.rotation, worker);
  worker.Barrier();
  for (const KeyJob& job : jobs) {
    const kernels::RingWriteJob write = {job.rings, job.rows};
    step.ops.write_rings({&write, 1}, worker);
  }
}

}  // namespace fulgur::model

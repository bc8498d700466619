#include "model/layer_step.h"

#include "model/rope.h"

namespace fulgur::model {
namespace {

// What one worker makes alone in a few microseconds, about the time that a barrier takes.
constexpr int64_t kAloneValues = 32768;

// scratch.x = the streams as one normalised row for the sub-layer.
void CollapseStreams(const StepContext& step, const SublayerInput& next,
                     const base::WorkerRank& worker) {
  kernels::HcPreArgs args = CollapseArgs(step, next.hc, next.norm);
  args.post_comb = step.scratch.post_comb;
  args.out = step.scratch.x.Out(next.formats);
  args.out.f32 = step.scratch.x.f32;
  step.ops.hc_pre(args, worker);
}

}  // namespace

LayerFormats FormatsOfLayer(const Layer& layer) {
  const Attention& a = layer.attention;
  LayerFormats formats;
  formats.attention_inputs =
      FormatsOf({&a.wq_a, &a.wkv, &a.compressor.wkv, &a.compressor.wgate, &a.indexer.weights_proj,
                 &a.indexer.compressor.wkv, &a.indexer.compressor.wgate});
  formats.expert_inputs = FormatsOf({&layer.moe.router});
  for (const std::vector<Expert>* experts : {&layer.moe.experts, &layer.moe.shared}) {
    for (const Expert& expert : *experts) {
      formats.expert_inputs.Add(expert.gate);
      formats.expert_inputs.Add(expert.up);
      formats.expert_inner.Add(expert.down);
    }
  }
  return formats;
}

void WriteRotations(const StepContext& step, std::span<const int64_t> positions,
                    const base::WorkerRank& worker) {
  const auto [begin, end] = worker.Share(static_cast<int64_t>(positions.size()));
  for (int64_t row = begin; row < end; ++row) {
    WriteRotation(positions[static_cast<size_t>(row)], step.frequencies,
                  step.scratch.rotation + row * step.config.rope_dim);
  }
}

void LookUp(const StepContext& step, const Embedding& table, int64_t size, int64_t copies,
            float* out, const base::WorkerRank& worker) {
  kernels::EmbedArgs args;
  args.tokens = step.tokens.data();
  args.table_f32 = table.f32.empty() ? nullptr : table.f32.data();
  args.table_bf16 = table.bf16.empty() ? nullptr : table.bf16.data();
  args.streams = out;
  args.rows = step.rows();
  args.num_streams = copies;
  args.hidden = size;
  step.ops.embed(args, worker);
}

void EndRegion(const base::WorkerRank& worker, int64_t values,
               absl::FunctionRef<void(const base::WorkerRank&)> rows) {
  if (values <= kAloneValues) {
    worker.Barrier([&] { rows(base::WorkerRank::Alone()); });
    return;
  }
  worker.Barrier();
  rows(worker);
  worker.Barrier();
}

SublayerInput AttentionInput(const Layer& layer, const LayerFormats& formats) {
  return {layer.attn_hc, layer.attn_norm, formats.attention_inputs};
}

void EnterSublayer(const StepContext& step, const SublayerInput& next, const float* o,
                   const base::WorkerRank& worker) {
  kernels::HcPostArgs args;
  args.streams = step.scratch.streams;
  args.rows = step.rows();
  args.num_streams = step.config.hc_mult;
  args.hidden = step.config.hidden_size;
  args.o = o;
  args.post_comb = step.scratch.post_comb;
  args.fn = &next.hc.fn;
  args.partials = step.scratch.partials;
  step.ops.hc_post(args, worker);
  if (next.norm.empty()) return worker.Barrier();
  EndRegion(worker, args.rows * args.num_streams * args.hidden,
            [&](const base::WorkerRank& sharing) { CollapseStreams(step, next, sharing); });
}

kernels::HcPreArgs CollapseArgs(const StepContext& step, const HyperConnection& hc,
                                std::span<const float> norm) {
  kernels::HcPreArgs args;
  args.streams = step.scratch.streams;
  args.rows = step.rows();
  args.num_streams = step.config.hc_mult;
  args.hidden = step.config.hidden_size;
  args.partials = step.scratch.partials;
  args.base = hc.base;
  args.scale = hc.scale;
  args.sinkhorn_iters = step.config.hc_sinkhorn_iters;
  args.hc_eps = step.config.hc_eps;
  args.rms_eps = step.config.rms_norm_eps;
  args.norm_weight = norm.data();
  return args;
}

void RunLayer(const StepContext& step, const Layer& layer, const LayerFormats& formats,
              int64_t index, const SublayerInput& next, const base::WorkerRank& worker) {
  RunAttention(step, layer, index, worker);
  EnterSublayer(step, {layer.ffn_hc, layer.ffn_norm, formats.expert_inputs}, step.scratch.o,
                worker);
  RunExperts(step, layer, formats, worker);
  EnterSublayer(step, next, step.scratch.o, worker);
}

void LinearJobs::Add(const kernels::PackedLinear& weight, const ActivationBuffer& x, float* y,
                     int64_t y_stride) {
  kernels::LinearJob job;
  job.weight = &weight;
  job.x = x.View(rows_, weight.in);
  job.y = y;
  job.y_stride = y_stride;
  Add(job);
}

void LinearJobs::Add(const kernels::LinearJob& job) {
  if (count_ == jobs_.size()) Run();
  jobs_[count_++] = job;
}

void LinearJobs::Run() {
  ops_.linear({jobs_.data(), count_}, worker_);
  count_ = 0;
}

}  // namespace fulgur::model

#include "model/layer_step.h"

namespace fulgur::model {

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

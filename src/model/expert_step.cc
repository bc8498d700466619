#include <algorithm>

#include "model/layer_step.h"

namespace fulgur::model {
namespace {

// A router's logit takes as long as this many values of other stages.
constexpr int64_t kRouteWork = 16;

// The regions of one layer's experts.
class ExpertStep {
 public:
  ExpertStep(const StepContext& step, const Moe& moe, const Formats& inner,
             const base::WorkerRank& worker)
      : step_(step),
        config_(step.config),
        ops_(step.ops),
        scratch_(step.scratch),
        moe_(moe),
        inner_(inner),
        worker_(worker),
        grouping_(scratch_.grouping[static_cast<size_t>(worker.rank())]),
        rows_(step.rows()) {}

  void Run() {
    Score();
    EndRegion(worker_, rows_ * config_.num_experts * kRouteWork,
              [this](const base::WorkerRank& sharing) { Route(sharing); });

    kernels::ExpertArgs args = Group();
    ops_.expert_gate_up(args, worker_);
    EndInner(args);

    ops_.expert_down(args, worker_);
  }

 private:
  void Score();
  void Route(const base::WorkerRank& worker);
  kernels::ExpertArgs Group();
  void EndInner(kernels::ExpertArgs& args);

  int32_t PlaceRouted();
  size_t ListRouted();

  const StepContext& step_;
  const ModelConfig& config_;
  const kernels::OpTable& ops_;
  const Scratch& scratch_;
  const Moe& moe_;
  const Formats& inner_;
  const base::WorkerRank& worker_;
  const ExpertGrouping& grouping_;
  const int64_t rows_;
};

void ExpertStep::Score() {
  LinearJobs jobs(step_, worker_);
  jobs.Add(moe_.router, scratch_.x, scratch_.router_logits);
  jobs.Run();
}

void ExpertStep::Route(const base::WorkerRank& worker) {
  kernels::RouteArgs args;
  args.logits = scratch_.router_logits;
  args.rows = rows_;
  args.num_experts = config_.num_experts;
  args.top_k = config_.experts_per_token;
  if (moe_.token_experts.empty()) {
    args.bias = moe_.router_bias.data();
  } else {
    args.token_experts = moe_.token_experts.data();
    args.tokens = step_.tokens.data();
  }
  args.normalize = config_.norm_topk_prob;
  args.scale = config_.routed_scaling_factor;
  args.experts = scratch_.experts;
  args.weights = scratch_.expert_weights;
  ops_.route(args, worker);
}

// Sorts the (row, expert) pairs by expert, rows in order; returns how many there are.
int32_t ExpertStep::PlaceRouted() {
  const int64_t pairs = rows_ * config_.experts_per_token;
  int32_t* end = grouping_.expert_end;
  std::fill_n(end, config_.num_experts, 0);
  for (int64_t i = 0; i < pairs; ++i) ++end[scratch_.experts[i]];
  int32_t total = 0;
  for (int64_t e = 0; e < config_.num_experts; ++e) {
    total += end[e];
    end[e] = total - end[e];  // where the expert begins; it grows to where it ends
  }
  for (int64_t i = 0; i < pairs; ++i) {
    const int32_t slot = end[scratch_.experts[i]]++;
    grouping_.slot_row[slot] = static_cast<int32_t>(i / config_.experts_per_token);
    grouping_.slot_weight[slot] = scratch_.expert_weights[i];
  }
  return total;
}

// One task for each routed expert that has rows; returns their number.
size_t ExpertStep::ListRouted() {
  size_t count = 0;
  int32_t begin = 0;
  for (size_t e = 0; e < moe_.experts.size(); ++e) {
    const int32_t end = grouping_.expert_end[e];
    if (end > begin) {
      const Expert& expert = moe_.experts[e];
      grouping_.tasks[count++] = {&expert.gate, &expert.up, &expert.down, begin, end - begin};
    }
    begin = end;
  }
  return count;
}

kernels::ExpertArgs ExpertStep::Group() {
  int32_t slot = PlaceRouted();
  size_t count = ListRouted();
  for (const Expert& expert : moe_.shared) {
    const auto rows = static_cast<int32_t>(rows_);
    grouping_.tasks[count++] = {&expert.gate, &expert.up, &expert.down, slot, rows};
    for (int32_t row = 0; row < rows; ++row, ++slot) {
      grouping_.slot_row[slot] = row;
      grouping_.slot_weight[slot] = 1.0F;
    }
  }
  kernels::ExpertArgs args;
  args.tasks = {grouping_.tasks, count};
  args.slot_row = grouping_.slot_row;
  args.slot_weight = grouping_.slot_weight;
  args.x = scratch_.x.View(rows_, config_.hidden_size);
  args.swiglu_limit = config_.swiglu_limit;
  args.expert_size = config_.expert_size;
  args.h = scratch_.h;
  args.out = scratch_.o;
  args.rows = rows_;
  return args;
}

// h in the representations that the down projections read.
void ExpertStep::EndInner(kernels::ExpertArgs& args) {
  const int64_t slots = args.tasks.back().first_slot + args.tasks.back().num_slots;
  ActivationBuffer rows = scratch_.h_rows;
  rows.f32 = scratch_.h;  // as it is
  args.h_rows = rows.View(slots, config_.expert_size);
  Formats formats = inner_;
  formats.f32 = false;
  if (!formats.bf16 && !formats.int8) return worker_.Barrier();
  kernels::NormRowsJob convert;
  convert.x = scratch_.h;
  convert.rows = slots;
  convert.cols = config_.expert_size;
  convert.out = rows.Out(formats);
  EndRegion(worker_, convert.rows * convert.cols, [&](const base::WorkerRank& sharing) {
    ops_.norm_rows({&convert, 1}, sharing);
  });
}

}  // namespace

void RunExperts(const StepContext& step, const Layer& layer, const LayerFormats& formats,
                const base::WorkerRank& worker) {
  ExpertStep(step, layer.moe, formats.expert_inner, worker).Run();
}

}  // namespace fulgur::model

#include "engine/model_engine.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "base/team.h"
#include "base/team_sizer.h"
#include "engine/local_engine.h"
#include "engine/model_runner.h"
#include "kv/store.h"
#include "model/model.h"

namespace fulgur::engine {
namespace {

// Rows for prompt log probabilities in a step, beyond one per sequence.
constexpr int64_t kPromptLogitRows = 64;

// The model with everything it runs on.
class LocalModel : public ModelRunner {
 public:
  using Log = std::function<void(const std::string&)>;

  LocalModel(int num_threads, kv::Store store, Log log)
      : team_(num_threads), sizer_(team_), store_(std::move(store)), log_(std::move(log)) {}

  absl::Status Load(const ModelEngineOptions& options, model::ModelConfig config,
                    model::Weights weights, const kernels::OpTable& ops);

  int64_t VocabSize() const override { return model_->config().vocab_size; }

  absl::Status Forward(const model::StepBatch& batch, std::span<float> logits) override {
    model_->Forward(batch, logits);
    const std::string note = sizer_.AfterRegion();
    if (!note.empty() && log_) log_(note);
    return absl::OkStatus();
  }

  model::DrafterKind drafter() const override { return model_->config().drafter; }
  int64_t MaxDrafts() const override { return model_->max_drafts(); }

  absl::Status Propose(std::span<const model::DraftRows> rows, model::DraftChooser& chooser,
                       model::Drafts& out) override {
    model_->Propose(rows, chooser, out);
    return absl::OkStatus();
  }

 private:
  base::WorkerTeam team_;
  base::TeamSizer sizer_;
  const kv::Store store_;
  const Log log_;
  std::unique_ptr<model::Model> model_;
};

sched::SchedulerLimits CompleteLimits(const ModelEngineOptions& options) {
  sched::SchedulerLimits limits = options.limits;
  if (limits.max_logit_rows == 0) {
    limits.max_logit_rows = limits.max_num_seqs * (1 + options.max_drafts) + kPromptLogitRows;
  }
  return limits;
}

model::StepLimits StepLimitsOf(const ModelEngineOptions& options) {
  const sched::SchedulerLimits limits = CompleteLimits(options);
  return {.max_tokens = limits.max_num_batched_tokens,
          .max_sequences = limits.max_num_seqs,
          .max_logit_rows = limits.max_logit_rows,
          .max_position = limits.max_model_len,
          .max_drafts = options.max_drafts};
}

kv::Layout LayoutOf(const ModelEngineOptions& options, const model::ModelConfig& config) {
  const bool drafts = config.drafter != model::DrafterKind::kNone;
  return model::CacheLayout(config, options.precision, drafts ? options.max_drafts : 0);
}

absl::Status LocalModel::Load(const ModelEngineOptions& options, model::ModelConfig config,
                              model::Weights weights, const kernels::OpTable& ops) {
  ASSIGN_OR_RETURN(model_,
                   model::Model::Create(std::move(config), std::move(weights), options.precision,
                                        StepLimitsOf(options), ops, team_, store_));
  return absl::OkStatus();
}

}  // namespace

int64_t StepBytes(const ModelEngineOptions& options, const model::ModelConfig& config) {
  const model::StepLimits limits = StepLimitsOf(options);
  return model::Model::ScratchBytes(config, options.precision, limits, options.num_threads) +
         limits.max_logit_rows * config.vocab_size * static_cast<int64_t>(sizeof(float));
}

absl::StatusOr<std::unique_ptr<ModelRunner>> CreateModelRunner(const ModelEngineOptions& options,
                                                               model::ModelConfig config,
                                                               model::Weights weights,
                                                               const MemoryPlan& plan,
                                                               const base::Machine& machine) {
  ASSIGN_OR_RETURN(kv::Store store,
                   kv::Store::Create(LayoutOf(options, config), plan.num_pages, plan.num_slots));
  auto runner = std::make_unique<LocalModel>(options.num_threads, std::move(store), options.log);
  RETURN_IF_ERROR(runner->Load(options, std::move(config), std::move(weights),
                               kernels::SelectOps(machine, options.ops)));
  return runner;
}

absl::StatusOr<MemoryPlan> PlanModelMemory(const ModelEngineOptions& options,
                                           const model::ModelConfig& config,
                                           int64_t available_bytes) {
  const int64_t left = std::max<int64_t>(0, available_bytes - StepBytes(options, config));
  return PlanMemory(LayoutOf(options, config), options.memory, left);
}

absl::StatusOr<ModelEngine> CreateModelEngine(const ModelEngineOptions& options,
                                              model::ModelConfig config, model::Weights weights,
                                              const base::Machine& machine) {
  if (!kernels::Supports(machine, options.ops)) {
    return absl::InvalidArgumentError("this machine cannot run the kernels that were asked for");
  }
  ModelEngineOptions complete = options;
  complete.limits = CompleteLimits(options);
  RETURN_IF_ERROR(sched::ValidateLimits(complete.limits));
  ASSIGN_OR_RETURN(const MemoryPlan plan,
                   PlanModelMemory(options, config, machine.available_bytes));
  complete.limits.max_model_len = plan.max_model_len;
  ASSIGN_OR_RETURN(
      std::unique_ptr<ModelRunner> runner,
      CreateModelRunner(complete, std::move(config), std::move(weights), plan, machine));
  const CoreOptions core{.limits = complete.limits,
                         .num_pages = plan.num_pages,
                         .num_slots = plan.num_slots,
                         .eos_tokens = options.eos_tokens,
                         .seed = options.seed,
                         .speculation = options.speculation};
  ASSIGN_OR_RETURN(std::unique_ptr<Engine> engine,
                   CreateLocalEngine({.core = core}, std::move(runner)));
  return ModelEngine{.engine = std::move(engine), .memory = plan};
}

}  // namespace fulgur::engine

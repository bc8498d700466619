// The engine that runs a DeepSeek-V4 model in this process: from loaded weights to something that
// takes requests.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/machine.h"
#include "engine/engine.h"
#include "engine/memory_plan.h"
#include "engine/model_runner.h"
#include "engine/speculation.h"
#include "kernels/op_table.h"
#include "model/config.h"
#include "model/precision.h"
#include "model/weights.h"
#include "sched/scheduler.h"

namespace fulgur::engine {

struct ModelEngineOptions {
  // max_num_seqs and max_model_len must agree with those of `memory`; max_logit_rows 0 means a
  // sensible number.
  sched::SchedulerLimits limits;
  MemoryRequest memory;
  model::Precision precision = model::Precision::kNative;
  kernels::OpChoice ops = kernels::OpChoice::kAuto;
  int num_threads = 1;
  // Drafts of a sequence in a step, at most; no matter if the configuration has no drafter.
  int64_t max_drafts = 0;
  std::vector<int32_t> eos_tokens = {};
  std::optional<uint64_t> seed = std::nullopt;
  SpeculationOptions speculation = {};  // with at most max_drafts
  // Gets a sentence when worker threads are left out or come back. Called from the engine's thread.
  std::function<void(const std::string&)> log = nullptr;
};

struct ModelEngine {
  std::unique_ptr<Engine> engine;
  MemoryPlan memory;
};

// What a step needs besides weights and sequence memory: scratch and logits.
int64_t StepBytes(const ModelEngineOptions& options, const model::ModelConfig& config);

// The memory that CreateModelEngine gives to sequences of this model. Counts what the drafter of
// the configuration needs beside its weights.
absl::StatusOr<MemoryPlan> PlanModelMemory(const ModelEngineOptions& options,
                                           const model::ModelConfig& config,
                                           int64_t available_bytes);

// The model, and the drafter if the configuration has one, with its own workers and sequence
// memory. The limits must be complete.
absl::StatusOr<std::unique_ptr<ModelRunner>> CreateModelRunner(const ModelEngineOptions& options,
                                                               model::ModelConfig config,
                                                               model::Weights weights,
                                                               const MemoryPlan& plan,
                                                               const base::Machine& machine);

// `machine` must have been detected after the weights were loaded: its available_bytes are shared
// between step scratch and sequences. Errors name the option that is wrong or too large.
absl::StatusOr<ModelEngine> CreateModelEngine(const ModelEngineOptions& options,
                                              model::ModelConfig config, model::Weights weights,
                                              const base::Machine& machine);

}  // namespace fulgur::engine

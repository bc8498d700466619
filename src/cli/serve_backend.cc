#include "cli/serve_backend.h"

#include <unistd.h>

#include <optional>
#include <utility>

#include "base/status_macros.h"
#include "cli/load_progress.h"
#include "cli/serve_drafter.h"
#include "cli/serve_files.h"
#include "engine/model_engine.h"
#include "engine/scripted_engine.h"
#include "fmt/format.h"
#include "kv/layout.h"
#include "model/checkpoint.h"
#include "model/dummy_weights.h"
#include "model/weight_loader.h"
#include "spdlog/spdlog.h"

namespace fulgur::cli {
namespace {

constexpr std::string_view kEndOfSentence = "<｜end▁of▁sentence｜>";
// Of a replayed script without a model to say.
constexpr int64_t kScriptModelLen = 1 << 20;

absl::StatusOr<model::Weights> ReadWeights(const ServeOptions& options,
                                           const std::optional<model::Checkpoint>& drafter) {
  std::optional<model::Checkpoint> opened;  // unless the drafter's is the same
  if (!drafter || DrafterFolder(options) != options.model) {
    ASSIGN_OR_RETURN(opened, model::Checkpoint::Open(options.model));
  }
  const model::Checkpoint& checkpoint = opened ? *opened : *drafter;
  LoadProgress progress(isatty(STDERR_FILENO) != 0);
  const model::LoadOptions load{
      .precision = options.engine.precision,
      .strategy = options.load_strategy,
      .num_threads = options.load_threads,
      .drafter = drafter ? &*drafter : nullptr,
      .progress = [&](int64_t done, int64_t total) { progress.Update(done, total); }};
  return model::LoadWeights(checkpoint, load);
}

absl::StatusOr<model::Weights> MakeWeights(const ServeOptions& options,
                                           const ModelWithDrafter& model) {
  if (!options.dummy_weights) return ReadWeights(options, model.drafter);
  spdlog::warn("--load-format dummy: the weights are random, and so is what the model says");
  return model::MakeDummyWeights(model.config, {.precision = options.engine.precision,
                                                .num_threads = options.load_threads,
                                                .seed = options.engine.seed.value_or(0)});
}

void LogSpeculation(const ServeOptions& options, const model::ModelConfig& config) {
  if (!options.speculation.enabled) return;
  for (const std::string& note : options.speculation.notes) spdlog::warn("{}", note);
  spdlog::info("speculation: {}", DescribeSpeculation(options.engine.speculation, config.drafter));
}

absl::Status CheckVocabulary(const text::Tokenizer& tokenizer, int64_t vocab_size) {
  if (tokenizer.vocab_size() <= vocab_size) return absl::OkStatus();
  return absl::InvalidArgumentError(
      fmt::format("the tokenizer has {} tokens and the model only {}: they do not belong together",
                  tokenizer.vocab_size(), vocab_size));
}

std::map<std::string, std::string> CacheLabels(const ServeOptions& options,
                                               const engine::MemoryPlan& memory) {
  return {{"block_size", std::to_string(kv::kPageTokens)},
          {"num_gpu_blocks", std::to_string(memory.num_pages)},
          {"num_state_slots", std::to_string(memory.num_slots)},
          {"gpu_memory_utilization", fmt::format("{}", options.engine.memory.memory_utilization)},
          {"enable_prefix_caching", "False"}};
}

}  // namespace

absl::StatusOr<Backend> StartScript(ServeOptions& options, const text::Tokenizer& tokenizer) {
  ASSIGN_OR_RETURN(auto script, engine::LoadScript(options.script));
  const auto eos = tokenizer.FindAddedToken(kEndOfSentence);
  if (!eos) {
    return absl::InvalidArgumentError(
        fmt::format("the tokenizer has no {}, which ends answers", kEndOfSentence));
  }
  spdlog::info("replaying {} answers of {}; no model is run", script.size(), options.script);
  if (options.speculation.enabled) {
    spdlog::info("--speculative-config has no effect: no model is run");
  }
  const int64_t length = options.max_model_len.value_or(kScriptModelLen);
  Backend backend;
  backend.eos_tokens = {*eos};
  backend.engine = engine::CreateScriptedEngine(
      {.script = std::move(script),
       .tokenize = [tokenizer](std::string_view text) { return tokenizer.Encode(text); },
       .eos_token = *eos,
       .max_model_len = length > 0 ? length : kScriptModelLen,
       .vocab_size = tokenizer.vocab_size()});
  return backend;
}

absl::StatusOr<Backend> StartModel(ServeOptions& options, const text::Tokenizer* tokenizer,
                                   const base::Machine& machine) {
  ASSIGN_OR_RETURN(model::ModelConfig config, CompleteFromCheckpoint(options));
  ASSIGN_OR_RETURN(ModelWithDrafter with_drafter, AddDrafter(options, std::move(config)));
  config = with_drafter.config;
  LogSpeculation(options, config);
  if (tokenizer != nullptr) RETURN_IF_ERROR(CheckVocabulary(*tokenizer, config.vocab_size));
  if (!kernels::Supports(machine, options.engine.ops)) {
    return absl::InvalidArgumentError(
        options.engine.ops == kernels::OpChoice::kAvx2
            ? "--kernels avx2: this machine lacks AVX2 with FMA; leave the flag out"
            : "--kernels avx512: this machine lacks AVX-512 VNNI; leave the flag out");
  }
  ASSIGN_OR_RETURN(model::Weights weights, MakeWeights(options, with_drafter));
  with_drafter.drafter.reset();  // its files may be closed
  spdlog::info("weights: {:.3f} GB in memory",
               static_cast<double>(weights.storage->size_bytes()) / 1e9);
  options.engine.log = [](const std::string& note) { spdlog::warn("{}", note); };
  ASSIGN_OR_RETURN(
      engine::ModelEngine model,
      engine::CreateModelEngine(options.engine, config, std::move(weights), base::DetectMachine()));
  spdlog::info("{}", engine::DescribePlan(model.memory));
  return Backend{std::move(model.engine), options.engine.eos_tokens,
                 CacheLabels(options, model.memory)};
}

}  // namespace fulgur::cli

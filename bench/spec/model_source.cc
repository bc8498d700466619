#include "model_source.h"

#include <algorithm>
#include <utility>

#include "base/status_macros.h"
#include "model/checkpoint.h"
#include "model/drafter_source.h"
#include "model/dummy_weights.h"
#include "model/weight_loader.h"

namespace fulgur::bench_spec {
namespace {

constexpr int64_t kStages = 3;

// A drafter of the kind, as published checkpoints have it.
void DescribeDrafter(const ModelSource& source, model::ModelConfig& config) {
  config.drafter = source.kind;
  config.num_draft_blocks = 1;
  if (source.kind != model::DrafterKind::kDspark) return;
  model::DsparkConfig& dspark = config.dspark;
  config.num_draft_blocks = std::min(kStages, config.num_layers);
  dspark.block_size = source.block_size;
  dspark.noise_token = static_cast<int32_t>(config.vocab_size - 1);
  dspark.markov_rank = config.hidden_size / 4;
  dspark.target_layers.clear();
  for (int64_t i = config.num_layers - config.num_draft_blocks; i < config.num_layers; ++i) {
    dspark.target_layers.push_back(i);
  }
}

absl::StatusOr<LoadedModel> LoadRandom(const ModelSource& source, bool with_drafter, int threads) {
  LoadedModel loaded;
  ASSIGN_OR_RETURN(loaded.config, model::LoadConfig(source.folder));
  if (with_drafter) DescribeDrafter(source, loaded.config);
  ASSIGN_OR_RETURN(loaded.weights,
                   model::MakeDummyWeights(loaded.config, {.num_threads = threads}));
  return loaded;
}

// A drafter that knows nothing, beside a model that was trained.
absl::Status AddRandomDrafter(const ModelSource& source, int threads, LoadedModel& loaded) {
  DescribeDrafter(source, loaded.config);
  ASSIGN_OR_RETURN(model::Weights random,
                   model::MakeDummyWeights(loaded.config, {.num_threads = threads}));
  loaded.weights.drafter = std::move(random.drafter);
  if (!loaded.weights.drafter.storage) loaded.weights.drafter.storage = std::move(random.storage);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<LoadedModel> LoadModel(const ModelSource& source, bool with_drafter, int threads) {
  if (source.random_main) return LoadRandom(source, with_drafter, threads);
  ASSIGN_OR_RETURN(const model::Checkpoint main, model::Checkpoint::Open(source.folder));
  LoadedModel loaded{.config = main.config(), .weights = {}};
  model::LoadOptions load;
  load.num_threads = threads;
  if (!with_drafter || source.random_drafter) {
    ASSIGN_OR_RETURN(loaded.weights, model::LoadWeights(main, load));
    if (with_drafter) RETURN_IF_ERROR(AddRandomDrafter(source, threads, loaded));
    return loaded;
  }
  const std::string& folder = source.drafter_folder.empty() ? source.folder : source.drafter_folder;
  ASSIGN_OR_RETURN(const model::Checkpoint drafter, model::Checkpoint::Open(folder));
  ASSIGN_OR_RETURN(loaded.config, model::UseDrafter(loaded.config, drafter));
  load.drafter = &drafter;
  ASSIGN_OR_RETURN(loaded.weights, model::LoadWeights(main, load));
  return loaded;
}

}  // namespace fulgur::bench_spec

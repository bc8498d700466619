// The models that are measured: a checkpoint or random weights, with a drafter of either kind.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "model/config.h"
#include "model/weights.h"

namespace fulgur::bench_spec {

struct ModelSource {
  std::string folder = {};          // a checkpoint, or a config.json alone with random weights
  bool random_main = false;         // random weights
  bool random_drafter = true;       // random weights, too; false: read from `drafter_folder`
  std::string drafter_folder = {};  // empty: the checkpoint itself
  // Of a random drafter, where the config describes none.
  model::DrafterKind kind = model::DrafterKind::kDspark;
  int64_t block_size = 5;
};

struct LoadedModel {
  model::ModelConfig config;
  model::Weights weights;
};

// With its drafter or without one.
absl::StatusOr<LoadedModel> LoadModel(const ModelSource& source, bool with_drafter, int threads);

}  // namespace fulgur::bench_spec

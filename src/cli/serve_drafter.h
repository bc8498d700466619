// Finds the drafter that --speculative-config asks for, before any weights are read.
#pragma once

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "cli/serve_options.h"
#include "model/checkpoint.h"
#include "model/config.h"

namespace fulgur::cli {

// The folder that holds the drafter.
const std::string& DrafterFolder(const ServeOptions& options);

struct ModelWithDrafter {
  model::ModelConfig config;
  // Where the drafter's weights are: the checkpoint itself or a folder of its own. None without a
  // drafter, or with random weights.
  std::optional<model::Checkpoint> drafter;
};

// The configuration of the model together with its drafter, if one is asked for; completes the
// engine's options. Errors are one sentence: nothing there, another kind, other dimensions.
absl::StatusOr<ModelWithDrafter> AddDrafter(ServeOptions& options, model::ModelConfig config);

}  // namespace fulgur::cli

// Finds the drafter that --speculative-config asks for, before any weights are read.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "cli/serve_options.h"
#include "model/config.h"

namespace fulgur::cli {

// The folder that holds the drafter.
const std::string& DrafterFolder(const ServeOptions& options);

// The configuration of the model together with its drafter, if one is asked for; completes the
// engine's options. Errors are one sentence: nothing there, another kind, other dimensions.
absl::StatusOr<model::ModelConfig> AddDrafter(ServeOptions& options, model::ModelConfig config);

}  // namespace fulgur::cli

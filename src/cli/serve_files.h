// What `fulgur serve` reads from a checkpoint folder besides the weights.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cli/serve_options.h"
#include "model/config.h"
#include "text/tokenizer.h"

namespace fulgur::cli {

// That `model` is a folder with a config.json. Says what to do if not.
absl::Status CheckModelFolder(const std::string& model);

// That the folder and the files named by flags are there. Says what to do if not.
absl::Status CheckFiles(const ServeOptions& options);

// Loads --tokenizer (a folder or a tokenizer.json) and checks that it has the special tokens of the
// prompt format.
absl::StatusOr<text::Tokenizer> LoadTokenizer(const ServeOptions& options);

// Reads the checkpoint's config and completes what depends on it: max_model_len, end-of-sequence
// tokens, sampling defaults, effort profile. Refuses a max_model_len above the model's.
absl::StatusOr<model::ModelConfig> CompleteFromCheckpoint(ServeOptions& options);

}  // namespace fulgur::cli

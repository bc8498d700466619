// The engine behind `fulgur serve`: a model with its weights, or a script that is replayed.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/machine.h"
#include "cli/serve_options.h"
#include "engine/engine.h"
#include "text/tokenizer.h"

namespace fulgur::cli {

struct Backend {
  std::unique_ptr<engine::Engine> engine;
  std::vector<int32_t> eos_tokens;
  std::map<std::string, std::string> cache_config;  // labels for /metrics
};

// Reads --scripted-output. `options.tokenizer` must be set.
absl::StatusOr<Backend> StartScript(ServeOptions& options, const text::Tokenizer& tokenizer);

// Loads the checkpoint (or makes random weights), gives what memory is left to sequences and starts
// the engine. Completes `options` from the checkpoint. `tokenizer` may be null.
absl::StatusOr<Backend> StartModel(ServeOptions& options, const text::Tokenizer* tokenizer,
                                   const base::Machine& machine);

}  // namespace fulgur::cli

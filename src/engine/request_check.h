// What every engine refuses at once.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "engine/engine.h"

namespace fulgur::engine {

// kInvalidArgument if the prompt is empty, prompt and output cannot fit into the context, or any id
// is outside the vocabulary. Pure.
absl::Status CheckRequest(const Request& request, int64_t max_model_len, int64_t vocab_size);

}  // namespace fulgur::engine

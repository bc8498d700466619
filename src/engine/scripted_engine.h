// An engine without a model: it replays given texts, so that clients and the protocol can be
// exercised. Thousands of streams run on one thread, driven by timers.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>
#include <vector>

#include "engine/engine.h"
#include "engine/script.h"

namespace fulgur::engine {

struct ScriptedEngineOptions {
  std::vector<ScriptLine> script;  // the first match wins; then the first line without `match`
  std::function<std::vector<int32_t>(std::string_view)> tokenize;
  int32_t eos_token = 0;
  int64_t max_model_len = 0;
  int64_t vocab_size = 0;
};

// min_tokens, stop tokens, max_tokens and deadlines hold as for a model. With ignore_eos the text
// is repeated until max_tokens. Log probabilities are those of a certain token. A request that no
// line matches ends with kError.
std::unique_ptr<Engine> CreateScriptedEngine(ScriptedEngineOptions options);

}  // namespace fulgur::engine

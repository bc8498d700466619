// An engine without a model: it replays given texts, so that clients and the protocol can be
// exercised. Thousands of streams run on one thread, driven by timers.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/engine.h"

namespace fulgur::engine {

enum class ScriptFinish {
  kStop,        // an end-of-sequence token follows the text
  kLength,      // as if max_tokens had been reached
  kError,       // the engine fails this request
  kDisconnect,  // the server should break the connection
};

// One canned answer.
struct ScriptLine {
  std::string match;     // part of Request::script_key; empty: the default
  std::string text;      // raw model output, special tokens spelt out
  int64_t delay_ms = 0;  // before each token
  ScriptFinish finish = ScriptFinish::kStop;
};

// Reads JSON lines {"match", "text", "delay_ms", "finish": "stop"|"length"|"error"|"disconnect"}.
// Errors name file, line and field.
absl::StatusOr<std::vector<ScriptLine>> LoadScript(const std::string& path);
absl::StatusOr<std::vector<ScriptLine>> ParseScript(std::string_view text, const std::string& path);

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

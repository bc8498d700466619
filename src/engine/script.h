// Canned answers for the scripted engine.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

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
  int64_t delay_ms = 0;  // before each step
  ScriptFinish finish = ScriptFinish::kStop;
  // Tokens that come at once, step after step, from the front again after the last: what a server
  // with speculative decoding does. Never empty.
  std::vector<int64_t> tokens_per_step = {1};
};

// Reads JSON lines {"match", "text", "delay_ms", "tokens_per_step": 3 or [4, 1, 3], "finish":
// "stop"|"length"|"error"|"disconnect"}; all but `text` may be left out. Errors name file, line and
// field.
absl::StatusOr<std::vector<ScriptLine>> LoadScript(const std::string& path);
absl::StatusOr<std::vector<ScriptLine>> ParseScript(std::string_view text, const std::string& path);

}  // namespace fulgur::engine

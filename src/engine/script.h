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
  int64_t delay_ms = 0;  // before each token
  ScriptFinish finish = ScriptFinish::kStop;
};

// Reads JSON lines {"match", "text", "delay_ms", "finish": "stop"|"length"|"error"|"disconnect"};
// all but `text` may be left out. Errors name file, line and field.
absl::StatusOr<std::vector<ScriptLine>> LoadScript(const std::string& path);
absl::StatusOr<std::vector<ScriptLine>> ParseScript(std::string_view text, const std::string& path);

}  // namespace fulgur::engine

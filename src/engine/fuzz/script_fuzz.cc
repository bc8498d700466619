// Any text as a file of canned answers: a script within its limits, or one sentence that names the
// file.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "engine/script.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto script = fulgur::engine::ParseScript(text, "file.jsonl");
  if (!script.ok()) {
    CHECK(script.status().code() == absl::StatusCode::kInvalidArgument);
    CHECK(script.status().message().find("file.jsonl") != absl::string_view::npos);
    return 0;
  }
  CHECK(!script->empty());
  for (const auto& line : *script) {
    CHECK(line.delay_ms >= 0 && line.delay_ms <= 3'600'000);
    CHECK(!line.tokens_per_step.empty());
    for (const int64_t tokens : line.tokens_per_step) CHECK(tokens >= 1 && tokens <= 100);
  }
  return 0;
}

// Any text as a file of prompts, conversations or a trace: requests within their limits, or one
// sentence that names the file.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "bench/load/dataset.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto dataset = fulgur::bench::ParseDataset(text, "file.jsonl");
  if (!dataset.ok()) {
    CHECK(dataset.status().message().find("file.jsonl") != absl::string_view::npos);
    return 0;
  }
  CHECK(dataset->sessions.empty() != dataset->trace.empty());
  for (const auto& session : dataset->sessions) {
    CHECK(!session.turns.empty());
    for (const auto& turn : session.turns) {
      CHECK(!turn.messages.empty());
      CHECK(turn.delay_ns >= 0);
      CHECK(turn.output_tokens.value_or(1) >= 1);
    }
  }
  fulgur::bench::TraceOptions options;
  options.speedup = 2.0;
  options.max_input = 1000;
  options.max_requests = 50;
  double last = 0.0;
  for (const auto& entry : fulgur::bench::SelectTrace(dataset->trace, options)) {
    CHECK(entry.input_length >= 1 && entry.input_length <= 1000);
    CHECK(std::isfinite(entry.timestamp_ms) && entry.timestamp_ms >= last);
    last = entry.timestamp_ms;
  }
  return 0;
}

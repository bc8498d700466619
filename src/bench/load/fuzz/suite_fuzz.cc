// Any text as a suite of scenarios: a suite, or one sentence that names the file.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "bench/load/run_options.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto suite = fulgur::bench::ParseSuite(text, "suite.json");
  if (!suite.ok()) {
    CHECK(!suite.status().message().empty());
    return 0;
  }
  CHECK(!suite->scenarios.empty());
  for (const auto& scenario : suite->scenarios) {
    CHECK(!scenario.lengths.empty());
    CHECK(scenario.requests.value_or(1) >= 1);
  }
  return 0;
}

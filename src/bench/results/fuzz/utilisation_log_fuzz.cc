// Feeds arbitrary bytes to the reader of utilisation logs and summarizes what it gives.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "bench/results/utilisation_log.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto log =
      fulgur::bench::ParseUtilisationLog({reinterpret_cast<const char*>(data), size}, "fuzz.log");
  if (!log.ok()) return 0;
  const auto summary = fulgur::bench::SummarizeUtilisation(*log);
  CHECK_EQ(summary.samples, static_cast<int64_t>(log->samples.size()));
  CHECK_LE(summary.series.size(), 600U);
  return 0;
}

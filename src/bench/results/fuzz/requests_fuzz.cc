// Feeds arbitrary bytes to the reader of profile_export.jsonl and lints what it gives.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "bench/results/aiperf_reader.h"
#include "bench/results/derive.h"
#include "bench/results/lint.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  fulgur::bench::Result result;
  result.cell.concurrency = 4;
  fulgur::bench::ReadRequestLines({reinterpret_cast<const char*>(data), size}, "fuzz.jsonl",
                                  result);
  fulgur::bench::SummarizeRequests(result);
  fulgur::bench::DeriveMetrics(result);
  fulgur::bench::Lint(result, {});
  return 0;
}

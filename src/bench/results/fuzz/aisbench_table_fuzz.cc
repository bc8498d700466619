// Feeds arbitrary bytes to the reader of comma-separated values and of AISBench's table.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "bench/results/aisbench_reader.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  fulgur::bench::Result result;
  const absl::Status status = fulgur::bench::AddAisbenchTable(text, "fuzz.csv", result);
  (void)status;
  return 0;
}

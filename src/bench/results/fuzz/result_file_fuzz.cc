// Feeds arbitrary bytes to the readers of result files and of comparisons; what is read is linted
// and written as JSON, which must hold neither NaN nor a broken number.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "bench/results/comparison_json.h"
#include "bench/results/lint.h"
#include "bench/results/result_reader.h"

namespace {

void CheckFinite(const fulgur::bench::MetricMap& metrics) {
  for (const auto& [tag, block] : metrics) {
    for (const auto& value : {block.avg, block.min, block.max, block.std}) {
      CHECK(!value || std::isfinite(*value) || block.unit == "ms" || block.unit == "sec");
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto results = fulgur::bench::ParseResults(text, "fuzz.json");
  if (results.ok()) {
    for (const fulgur::bench::Result& result : *results) {
      CheckFinite(result.cell.metrics);
      fulgur::bench::Lint(result, {});
    }
  }
  const auto comparison = fulgur::bench::ComparisonFromJson(text);
  if (!comparison.ok()) return 0;
  const std::string written = fulgur::bench::ComparisonToJson(*comparison);
  const auto again = fulgur::bench::ComparisonFromJson(written);
  CHECK(again.ok());
  CHECK(fulgur::bench::ComparisonToJson(*again) == written);
  return 0;
}

#include <algorithm>

#include "bench/results/aggregate.h"
#include "fmt/format.h"

namespace fulgur::bench {
namespace {

std::string Place(const std::string& scenario, int64_t concurrency) {
  return fmt::format("{} at concurrency {}", scenario, ConcurrencyName(concurrency).substr(1));
}

void CheckRegressions(const Comparison& comparison, GateResult& result) {
  for (const Contrast& contrast : comparison.contrasts) {
    if (contrast.tag != kHeadlineTag || contrast.statistic != "avg") continue;
    if (contrast.verdict != Verdict::kRegression) continue;
    result.failures.push_back(
        fmt::format("{} is a regression: {:.2f} instead of {:.2f} tokens/s per user ({:+.1f} %)",
                    Place(contrast.scenario, contrast.concurrency), *contrast.treatment,
                    *contrast.baseline, *contrast.delta_percent));
  }
}

// The rule never fails on results that are too good; those say that the baseline is old.
void CheckRatio(const Comparison& comparison, double ratio, GateResult& result) {
  bool any = false;
  for (const Contrast& contrast : comparison.contrasts) {
    if (contrast.tag != "fulgur_output_token_throughput_over_duration") continue;
    if (!contrast.baseline && !contrast.treatment) continue;
    any = true;
    const std::string place = Place(contrast.scenario, contrast.concurrency);
    if (!contrast.baseline || !contrast.treatment) {
      result.failures.push_back(place + " lacks the output tokens per second of one side");
    } else if (*contrast.treatment < ratio * *contrast.baseline) {
      result.failures.push_back(fmt::format("{}: {:.2f} output tokens/s are less than {} of {:.2f}",
                                            place, *contrast.treatment, ratio, *contrast.baseline));
    } else if (*contrast.treatment > *contrast.baseline / ratio) {
      result.notices.push_back(
          fmt::format("{}: {:.2f} output tokens/s are more than {:.2f} / {}: the baseline is stale",
                      place, *contrast.treatment, *contrast.baseline, ratio));
    }
  }
  if (!any) result.failures.push_back("no cell has output tokens per second to compare");
}

void CheckErrors(const Comparison& comparison, double percent, GateResult& result) {
  for (const CellFacts& cell : comparison.cells) {
    if (cell.system != comparison.treatment || !cell.requests || !cell.errors) continue;
    const auto all = static_cast<double>(*cell.requests + *cell.errors);
    const double share = all > 0 ? 100.0 * static_cast<double>(*cell.errors) / all : 0.0;
    if (share <= percent) continue;
    result.failures.push_back(fmt::format("{}: {} of {} requests failed, more than {} %",
                                          Place(cell.scenario, cell.concurrency), *cell.errors, all,
                                          percent));
  }
}

}  // namespace

GateResult ApplyGate(const Comparison& comparison, const GateOptions& options) {
  GateResult result;
  if (options.fail_on_regression) CheckRegressions(comparison, result);
  if (options.min_ratio) CheckRatio(comparison, *options.min_ratio, result);
  if (options.max_error_percent) CheckErrors(comparison, *options.max_error_percent, result);
  result.passed = result.failures.empty();
  return result;
}

}  // namespace fulgur::bench

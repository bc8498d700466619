#include "bench/load/estimate.h"

#include <algorithm>
#include <cmath>

#include "fmt/format.h"

namespace fulgur::bench {
namespace {

constexpr double kMinute = 60.0;
constexpr double kHour = 3600.0;

std::optional<double> Average(const MetricMap& metrics, const char* tag) {
  const auto found = metrics.find(tag);
  return found == metrics.end() ? std::nullopt : found->second.avg;
}

std::optional<double> MeanOutput(const Scenario& scenario) {
  double tokens = 0.0;
  double weights = 0.0;
  for (const LengthPairLaw& pair : scenario.lengths) {
    tokens += pair.weight * pair.output.mean;
    weights += pair.weight;
  }
  if (scenario.dataset.empty() && tokens > 0 && weights > 0) return tokens / weights;
  if (!scenario.default_output_tokens) return std::nullopt;
  return static_cast<double>(*scenario.default_output_tokens);
}

}  // namespace

void Pace::Learn(const MetricMap& metrics) {
  if (const auto ms = Average(metrics, "time_to_first_token")) first_token_s = *ms / 1000.0;
  if (const auto ms = Average(metrics, "inter_token_latency")) token_s = *ms / 1000.0;
}

std::optional<double> EstimateSeconds(const Scenario& scenario, int64_t concurrency,
                                      const Pace& pace) {
  if (scenario.duration_s) return scenario.duration_s;
  if (!scenario.requests) return std::nullopt;
  const double requests =
      static_cast<double>(*scenario.requests) * std::max(1.0, scenario.turns.turns.mean);
  if (scenario.rate && *scenario.rate > 0) return requests / *scenario.rate;
  const auto output = MeanOutput(scenario);
  if (!output) return std::nullopt;
  const double latency = pace.first_token_s + std::max(0.0, *output - 1) * pace.token_s;
  return std::ceil(requests / static_cast<double>(std::max<int64_t>(1, concurrency))) * latency;
}

std::string RoughTime(double seconds) {
  if (seconds < 2 * kMinute) return fmt::format("{:.0f} s", std::max(1.0, std::ceil(seconds)));
  if (seconds < 2 * kHour) return fmt::format("{:.0f} min", std::ceil(seconds / kMinute));
  const double minutes = std::ceil(seconds / kMinute);
  return fmt::format("{:.0f} h {:.0f} min", std::floor(minutes / 60), std::fmod(minutes, 60.0));
}

}  // namespace fulgur::bench

#include "bench/results/reference_reader.h"

#include <utility>

#include "bench/results/aiperf_plan.h"
#include "bench/results/derive.h"
#include "bench/results/statistic.h"
#include "bench/results/strings.h"
#include "bench/results/units.h"
#include "bench/results/utilisation_json.h"
#include "fmt/format.h"
#include "io/json.h"

namespace fulgur::bench {
namespace {

using CellKey = std::pair<std::string, int64_t>;

// "output_token_throughput_per_user.avg" and its numbers by scenario and concurrency.
absl::Status ReadMetric(std::string_view name, const JsonElement& element,
                        std::map<CellKey, Result>& cells) {
  const size_t dot = name.rfind('.');
  JsonObject scenarios;
  if (dot == std::string_view::npos || element.get(scenarios) != simdjson::SUCCESS) {
    return absl::InvalidArgumentError(
        fmt::format("{} is not TAG.STATISTIC with numbers by scenario", io::Quoted(name)));
  }
  const std::string tag(name.substr(0, dot));
  for (const auto scenario : scenarios) {
    JsonObject numbers;
    if (scenario.value.get(numbers) != simdjson::SUCCESS) continue;
    for (const auto entry : numbers) {
      const auto value = NumberOf(entry.value);
      const auto concurrency = ParseInteger(entry.key);
      if (!concurrency || *concurrency < 1 || !value) continue;
      MetricBlock& block = cells[{std::string(scenario.key), *concurrency}].cell.metrics[tag];
      block.unit = UsualUnit(tag);
      if (!SetStatistic(name.substr(dot + 1), *value, block)) {
        return absl::InvalidArgumentError(fmt::format(
            "{} does not end in avg, min, max, std, count, sum or a percentile", io::Quoted(name)));
      }
    }
  }
  return absl::OkStatus();
}

std::map<std::string, RunPlan> ReadPlans(const JsonObject& root) {
  std::map<std::string, RunPlan> plans;
  for (const JsonObject& scenario : ObjectsAt(root, "scenarios")) {
    plans[TextAt(scenario, "id")] = ReadRunPlan(scenario);
  }
  return plans;
}

}  // namespace

ReferenceFacts ReadReferenceFacts(const JsonObject& root) {
  ReferenceFacts facts;
  facts.source = TextAt(root, "source");
  facts.devices = IntegerAt(root, "devices");
  facts.environment = TextMapAt(root, "environment");
  for (const JsonObject& scenario : ObjectsAt(root, "scenarios")) {
    facts.labels[TextAt(scenario, "id")] = TextMapAt(scenario, "label");
  }
  if (const auto utilisation = ObjectAt(root, "utilisation")) {
    facts.utilisation = UtilisationFromJson(*utilisation);
  }
  return facts;
}

absl::StatusOr<std::vector<Result>> ReadReference(const JsonObject& root,
                                                  const std::filesystem::path& file) {
  std::map<CellKey, Result> cells;
  std::vector<std::string> problems;
  const auto metrics = ObjectAt(root, "metrics");
  if (metrics) {
    for (const auto metric : *metrics) {
      const absl::Status status = ReadMetric(metric.key, metric.value, cells);
      if (!status.ok()) {
        problems.push_back(fmt::format("{}: {}; it is left out", file.string(), Sentence(status)));
      }
    }
  }
  if (cells.empty()) {
    return absl::NotFoundError(
        fmt::format("{} is a reference file without a number in \"metrics\"", file.string()));
  }
  std::map<std::string, RunPlan> plans = ReadPlans(root);
  const auto environment = TextMapAt(root, "environment");
  std::vector<Result> results;
  for (auto& [key, result] : cells) {
    Cell& cell = result.cell;
    cell.kind = ResultKind::kReference;
    cell.source = file.string();
    cell.scenario = key.first;
    cell.concurrency = key.second;
    cell.environment = environment;
    if (const auto plan = plans.find(key.first); plan != plans.end()) result.plan = plan->second;
    DeriveMetrics(result);
    results.push_back(std::move(result));
  }
  results.front().problems = std::move(problems);
  return results;
}

}  // namespace fulgur::bench

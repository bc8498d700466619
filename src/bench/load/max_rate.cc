#include "bench/load/max_rate.h"

#include <cmath>
#include <filesystem>
#include <utility>

#include "base/status_macros.h"
#include "bench/load/surroundings.h"
#include "bench/results/text_file.h"
#include "fmt/format.h"

namespace fulgur::bench {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr double kPrecision = 1.05;
constexpr int64_t kMostSteps = 20;

Scenario AtRate(const RunOptions& options, double rate) {
  Scenario scenario = options.scenarios.front();
  scenario.id = RateId(scenario.id, rate);
  scenario.rate = rate;
  scenario.arrivals.rate = rate;
  return scenario;
}

// A request that failed met nothing; a cell that was stopped early tells enough.
RateStep Judge(const RunOptions& options, double rate, const CellResult& result) {
  RateStep step;
  step.rate = rate;
  step.requests = result.valid_requests + result.failed_requests;
  const auto found = result.cell.metrics.find("good_request_fraction");
  if (found != result.cell.metrics.end()) step.attained = found->second.avg.value_or(0.0);
  step.held = step.requests > 0 && step.attained >= options.slo_attainment;
  return step;
}

Json ToJson(const RunOptions& options, const MaxRate& found) {
  Json json{{"format", "fulgur-max-rate/1"}, {"slo_attainment", options.slo_attainment}};
  json["objectives"] = Json::object();
  for (const Objective& objective : options.objectives) {
    json["objectives"][objective.tag] = objective.limit;
  }
  if (found.highest) json["max_rate"] = *found.highest;
  if (found.lowest) json["lowest_rate_that_fails"] = *found.lowest;
  if (!found.stopped_because.empty()) json["stopped_because"] = found.stopped_because;
  json["steps"] = Json::array();
  for (const RateStep& step : found.steps) {
    json["steps"].push_back({{"rate", step.rate},
                             {"attained", step.attained},
                             {"requests", step.requests},
                             {"held", step.held}});
  }
  return json;
}

}  // namespace

void RateSearch::Report(bool held) {
  (held ? low_ : high_) = rate_;
  if (low_ && high_) {
    rate_ = std::sqrt(*low_ * *high_);
    done_ = *high_ / *low_ <= kPrecision;
  } else {
    rate_ = held ? rate_ * 2.0 : rate_ / 2.0;
  }
  if (++steps_ == kMostSteps) done_ = true;
}

absl::StatusOr<MaxRate> FindMaxRate(const RunOptions& options, const RunHooks& hooks) {
  ASSIGN_OR_RETURN(const Surroundings surroundings, LookAround(options, hooks.say));
  MaxRate found;
  const auto& own = options.scenarios.front().concurrency;
  const int64_t limit = (own.empty() ? options.concurrency : own).front();
  RateSearch search(options.scenarios.front().rate.value_or(1.0));
  while (!search.done() && found.stopped_because.empty() && !hooks.interrupted()) {
    const double rate = search.rate();
    hooks.say(fmt::format("{:.4g} requests/s", rate));
    ASSIGN_OR_RETURN(CellPlan plan,
                     ResolveCell(options, AtRate(options, rate), limit, surroundings));
    plan.folder = fs::path(options.artifact_dir) / fmt::format("rate_{:.4g}", rate);
    ASSIGN_OR_RETURN(CellResult result, MeasureCell(options, plan, surroundings, hooks));
    if (result.interrupted) break;
    const RateStep step = Judge(options, rate, result);
    // That requests met their objectives counts only if they were sent as planned.
    if (step.held && !result.valid()) {
      found.stopped_because = result.invalid_reasons.front();
    } else {
      search.Report(step.held);
      found.steps.push_back(step);
    }
    hooks.on_cell(result);
    found.summary.cells.push_back(std::move(result));
  }
  found.highest = search.highest();
  found.lowest = search.lowest();
  found.summary.interrupted = hooks.interrupted();
  if (found.summary.interrupted) found.stopped_because = "interrupted";
  std::error_code ignored;
  fs::create_directories(options.artifact_dir, ignored);
  RETURN_IF_ERROR(WriteTextFile(fs::path(options.artifact_dir) / "max_rate.json",
                                ToJson(options, found).dump(2) + "\n"));
  return found;
}

}  // namespace fulgur::bench

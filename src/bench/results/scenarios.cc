#include "bench/results/scenarios.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <vector>

#include "absl/strings/ascii.h"
#include "bench/results/strings.h"
#include "fmt/format.h"

namespace fulgur::bench {
namespace {

constexpr std::string_view kRateMark = "-rate";

bool IsNear(double value, double wanted) { return std::fabs(value - wanted) <= 0.05 * wanted; }

std::optional<double> Mean(const Result& result, bool input) {
  const RunPlan& plan = result.plan;
  if (!plan.sequence_distribution.empty()) {
    const LengthPair& pair = plan.sequence_distribution.front();
    return input ? pair.input.mean : pair.output.mean;
  }
  const auto& planned = input ? plan.input_length : plan.output_length;
  if (planned) return planned->mean;
  const auto& metrics = result.cell.metrics;
  const auto it = metrics.find(input ? "input_sequence_length" : "output_sequence_length");
  return it == metrics.end() ? std::nullopt : it->second.avg;
}

const Scenario* Known(std::string_view id) {
  const auto it = std::find_if(std::begin(kScenarios), std::end(kScenarios),
                               [id](const Scenario& scenario) { return scenario.id == id; });
  return it == std::end(kScenarios) ? nullptr : it;
}

// "c16", "concurrency16", "concurrency_16", "parallel_16": the number behind the word.
std::optional<int64_t> ConcurrencyIn(std::string_view component) {
  for (const std::string_view word : {"concurrency_", "concurrency-", "concurrency", "parallel_"}) {
    const size_t at = component.find(word);
    if (at == std::string_view::npos) continue;
    const std::string_view rest = component.substr(at + word.size());
    const auto number = ParseInteger(rest.substr(0, rest.find_first_not_of("0123456789")));
    if (number && *number > 0) return number;
  }
  for (const std::string_view token : Words(component, "-_. ")) {
    const auto number = token.starts_with('c') ? ParseInteger(token.substr(1)) : std::nullopt;
    if (number && *number > 0) return number;
  }
  return std::nullopt;
}

// "smoke-c4": a name of its own in front of the concurrency.
std::string OwnName(std::string_view component) {
  const size_t dash = component.rfind("-c");
  if (dash == std::string_view::npos || dash == 0) return "";
  if (!ParseInteger(component.substr(dash + 2))) return "";
  const std::string_view name = component.substr(0, dash);
  return name.find('-') == std::string_view::npos ? std::string(name) : "";
}

}  // namespace

ScenarioName SplitScenario(const std::string& id) {
  const size_t mark = id.rfind(kRateMark);
  if (mark == std::string::npos || mark == 0) return {id, std::nullopt};
  const auto rate = ParseNumber(std::string_view(id).substr(mark + kRateMark.size()));
  if (!rate || *rate <= 0) return {id, std::nullopt};
  return {id.substr(0, mark), rate};
}

std::string JoinScenario(const ScenarioName& name) {
  return name.rate ? fmt::format("{}{}{:g}", name.base, kRateMark, *name.rate) : name.base;
}

ScenarioOrder OrderOf(const std::string& id) {
  const ScenarioName name = SplitScenario(id);
  const Scenario* known = Known(name.base);
  const size_t rank =
      known == nullptr ? std::size(kScenarios) : static_cast<size_t>(known - kScenarios);
  return {rank, name.base, name.rate.value_or(0.0), id};
}

std::map<std::string, std::string> ScenarioLabels(const std::string& id) {
  const ScenarioName name = SplitScenario(id);
  const Scenario* known = Known(name.base);
  const std::string rate = name.rate ? fmt::format(", {:g}/s", *name.rate) : "";
  return {{"en", std::string(known == nullptr ? name.base : known->english) + rate},
          {"zh", std::string(known == nullptr ? name.base : known->chinese) + rate}};
}

std::string ScenarioByLengths(const Result& result) {
  const auto input = Mean(result, true);
  const auto output = Mean(result, false);
  if (!input || !output) return "";
  for (const Scenario& scenario : kScenarios) {
    if (IsNear(*input, scenario.input_tokens) && IsNear(*output, scenario.output_tokens)) {
      return std::string(scenario.id);
    }
  }
  return "";
}

PathHints HintsOf(std::string_view relative_path) {
  PathHints hints;
  const std::string lower = absl::AsciiStrToLower(std::string(relative_path));
  for (const std::string_view component : Words(lower, "/")) {
    if (const auto number = ConcurrencyIn(component)) hints.concurrency = number;
    for (const std::string_view token : Words(component, "-_. ")) {
      if (Known(token) != nullptr) hints.scenario = token;
    }
    if (hints.scenario.empty()) hints.scenario = OwnName(component);
  }
  return hints;
}

}  // namespace fulgur::bench

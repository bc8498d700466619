#include "bench/results/aggregate.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "base/status_macros.h"
#include "bench/results/contrast.h"
#include "bench/results/environment_diff.h"
#include "bench/results/merge_cells.h"
#include "bench/results/scenarios.h"
#include "bench/results/strings.h"
#include "bench/results/telemetry_reader.h"
#include "bench/results/trials.h"
#include "bench/results/utilisation_log.h"
#include "fmt/format.h"
#include "fmt/ranges.h"

namespace fulgur::bench {
namespace {

// A system with everything that was read of it.
struct Loaded {
  SystemInput input;
  SystemFacts facts;
  std::vector<MergedCell> cells;
  std::map<std::string, std::map<std::string, std::string>> labels;
};

struct Compared {
  std::string_view tag;
  std::string_view statistic;
};

// In every cell of two systems. The first is the headline.
constexpr Compared kCompared[] = {
    {kHeadlineTag, "avg"},          {"fulgur_per_user_token_weighted", "avg"},
    {"inter_token_latency", "avg"}, {"inter_token_latency", "p50"},
    {"inter_token_latency", "p99"}, {"time_to_first_token", "avg"},
    {"time_to_first_token", "p50"}, {"time_to_first_token", "p99"},
    {"request_latency", "avg"},     {"fulgur_output_token_throughput_over_duration", "avg"}};

const SystemInput* FindInput(const AggregateOptions& options, const std::string& id) {
  for (const SystemInput& input : options.systems) {
    if (input.id == id) return &input;
  }
  return nullptr;
}

absl::Status CheckOptions(const AggregateOptions& options) {
  if (options.systems.empty()) {
    return absl::InvalidArgumentError("--system NAME=PATH is needed at least once");
  }
  std::set<std::string> ids;
  for (const SystemInput& input : options.systems) {
    if (input.id.empty()) return absl::InvalidArgumentError("--system needs a name before the '='");
    if (!ids.insert(input.id).second) {
      return absl::InvalidArgumentError(
          fmt::format("--system {} is given twice; give one folder or a manifest", input.id));
    }
  }
  for (const std::string& id : {options.baseline, options.treatment}) {
    if (!id.empty() && FindInput(options, id) == nullptr) {
      return absl::InvalidArgumentError(
          fmt::format("{} is named as baseline or treatment, but the systems are {}", id,
                      fmt::join(ids, ", ")));
    }
  }
  if (!options.baseline.empty() && options.baseline == options.treatment) {
    return absl::InvalidArgumentError(
        fmt::format("{} cannot be baseline and treatment at once", options.baseline));
  }
  if (!(options.threshold > 0 && options.threshold < 1)) {
    return absl::InvalidArgumentError(fmt::format(
        "--threshold {}: a share between 0 and 1 is needed, such as 0.05", options.threshold));
  }
  return absl::OkStatus();
}

// Without names the first system is the baseline and the second the treatment.
void SetRoles(const AggregateOptions& options, Comparison& comparison) {
  comparison.baseline = options.baseline;
  comparison.treatment = options.treatment;
  for (const SystemInput& input : options.systems) {
    if (comparison.baseline.empty() && input.id != comparison.treatment) {
      comparison.baseline = input.id;
    } else if (comparison.treatment.empty() && input.id != comparison.baseline) {
      comparison.treatment = input.id;
    }
  }
}

void AddProblems(const std::string& system, const std::vector<std::string>& problems,
                 Comparison& comparison) {
  for (const std::string& problem : problems) {
    comparison.problems.push_back(fmt::format("{}: {}", system, problem));
  }
}

absl::StatusOr<Loaded> Load(const SystemInput& input, const AggregateOptions& options,
                            Comparison& comparison) {
  ASSIGN_OR_RETURN(SystemResults found, FindResults(input.path, input.id));
  AddProblems(input.id, found.problems, comparison);
  Loaded system;
  system.input = input;
  system.facts.id = input.id;
  system.facts.label = input.label.empty() ? input.id : input.label;
  system.facts.devices = input.devices;
  system.cells =
      MergeCells(std::move(found.results), {input.id, options.latest}, comparison.problems);
  if (found.reference) {
    system.facts.source = found.reference->source;
    system.facts.utilisation = found.reference->utilisation;
    system.labels = found.reference->labels;
    if (!system.facts.devices) system.facts.devices = found.reference->devices;
  }
  system.facts.environment = CommonEnvironment(system.cells);
  return system;
}

void SetPerToken(const CellFacts& facts, double window_s, UtilisationSummary& summary) {
  const auto tokens = Statistic(&facts, "total_osl", "avg");
  if (!tokens || *tokens <= 0) return;
  if (summary.energy_j) summary.joules_per_output_token = *summary.energy_j / *tokens;
  if (!summary.busy_avg || summary.devices == 0) return;
  const double busy_seconds = *summary.busy_avg / 100.0 * summary.devices * window_s;
  if (busy_seconds > 0) summary.tokens_per_busy_device_second = *tokens / busy_seconds;
}

// True if the cell has a window and the log samples inside it.
bool SetCellUtilisation(const UtilisationLog& log, double clock_offset_s, CellFacts& facts) {
  for (const PhaseWindow& phase : facts.phases) {
    if (phase.name != "profiling") continue;
    const auto offset_ns = static_cast<int64_t>(clock_offset_s * 1e9);
    UtilisationSummary summary =
        SummarizeUtilisation(log, phase.wall_start_ns + offset_ns, phase.wall_end_ns + offset_ns);
    if (summary.samples == 0) return false;
    SetPerToken(facts, static_cast<double>(phase.wall_end_ns - phase.wall_start_ns) / 1e9, summary);
    facts.utilisation = std::move(summary);
    return true;
  }
  return false;
}

// What the cells must have taken, against what the log spans: requests that failed at once, a
// sampler that is slower than it says, or a log of another run show here.
void CheckSpan(const UtilisationLog& log, Loaded& system) {
  double expected_s = 0.0;
  for (const MergedCell& cell : system.cells) {
    const auto count = Statistic(&cell.facts, "request_count", "avg");
    const auto latency = Statistic(&cell.facts, "request_latency", "avg");
    if (!count || !latency || cell.facts.concurrency == kUnlimited) return;
    expected_s += *count * *latency / 1000.0 / static_cast<double>(cell.facts.concurrency);
  }
  const double span_s =
      static_cast<double>(log.samples.back().wall_ns - log.samples.front().wall_ns) / 1e9;
  if (expected_s <= 0 || span_s <= 0) return;
  const bool good = std::fabs(span_s - expected_s) <= 0.3 * expected_s;
  system.facts.lint.push_back(
      {"L13", good ? Severity::kPass : Severity::kWarn,
       fmt::format("the cells took about {:.0f} s by their requests, the utilisation log spans "
                   "{:.0f} s",
                   expected_s, span_s)});
}

// The devices as aiperf sampled them, by all cells that have its file; nothing if none has.
std::optional<UtilisationLog> DeviceTelemetry(const Loaded& system, Comparison& comparison) {
  std::optional<UtilisationLog> whole;
  for (const MergedCell& cell : system.cells) {
    for (const FoundResult& found : cell.results) {
      const std::filesystem::path file =
          std::filesystem::path(found.provenance.path).parent_path() / kDeviceTelemetryFile;
      std::error_code ignored;
      if (!std::filesystem::exists(file, ignored)) continue;
      auto log = ReadUtilisationLog(file);
      if (!log.ok()) {
        comparison.problems.push_back(Sentence(log.status()) + "; the telemetry is left out");
        continue;
      }
      AddProblems(file.string(), log->problems, comparison);
      if (!whole) {
        whole = *std::move(log);
      } else {
        whole->samples.insert(whole->samples.end(), log->samples.begin(), log->samples.end());
      }
    }
  }
  if (!whole) return std::nullopt;
  std::stable_sort(whole->samples.begin(), whole->samples.end(),
                   [](const auto& a, const auto& b) { return a.wall_ns < b.wall_ns; });
  return whole;
}

double WindowSeconds(const CellFacts& facts) {
  for (const PhaseWindow& phase : facts.phases) {
    if (phase.name != "profiling") continue;
    return static_cast<double>(phase.wall_end_ns - phase.wall_start_ns) / 1e9;
  }
  return 0.0;
}

// Without a log: what the results themselves say of their devices.
void UseTelemetry(Loaded& system, Comparison& comparison) {
  for (MergedCell& cell : system.cells) {
    CellFacts& facts = cell.facts;
    if (facts.utilisation) SetPerToken(facts, WindowSeconds(facts), *facts.utilisation);
  }
  const auto log = DeviceTelemetry(system, comparison);
  if (!log) return;
  system.facts.utilisation = SummarizeUtilisation(*log);
  for (MergedCell& cell : system.cells) SetCellUtilisation(*log, 0.0, cell.facts);
}

void AddUtilisation(Loaded& system, Comparison& comparison) {
  if (system.input.utilisation.empty()) return UseTelemetry(system, comparison);
  const auto log = ReadUtilisationLog(system.input.utilisation);
  if (!log.ok()) {
    comparison.problems.push_back(Sentence(log.status()) + "; utilisation is left out");
    return;
  }
  const std::string name = system.input.utilisation.string();
  AddProblems(name, log->problems, comparison);
  system.facts.utilisation = SummarizeUtilisation(*log);
  CheckSpan(*log, system);
  bool any = false;
  for (MergedCell& cell : system.cells) {
    if (SetCellUtilisation(*log, system.input.clock_offset_s, cell.facts)) any = true;
  }
  if (!any) {
    comparison.problems.push_back(fmt::format(
        "{} has no sample inside the window of any cell of {}: it is of another run, or the clocks "
        "differ (--clock-offset)",
        name, system.input.id));
  }
}

// The parts of a metric's mean that single requests contribute.
std::vector<Share> SharesOf(const MergedCell& cell, std::string_view tag) {
  std::vector<Share> shares;
  for (const FoundResult& found : cell.results) {
    for (const RequestLine& request : found.result.requests) {
      if (!request.valid()) continue;
      const RequestMetrics& metrics = request.metrics;
      if (tag == "fulgur_per_user_token_weighted") {
        const double tokens = metrics.Get("output_sequence_length", 0.0) - 1;
        const double seconds =
            (metrics.Get("request_latency", 0.0) - metrics.Get("time_to_first_token", 0.0)) /
            1000.0;
        if (tokens > 0) shares.push_back({tokens, seconds});
      } else if (metrics.Has(tag)) {
        shares.push_back({metrics.Get(tag, 0.0), 1.0});
      }
    }
  }
  return shares;
}

std::vector<double> RepetitionMeans(const MergedCell& cell, std::string_view tag) {
  std::vector<double> means;
  for (const FoundResult& found : cell.results) {
    const auto& metrics = found.result.cell.metrics;
    const auto it = metrics.find(std::string(tag));
    if (it != metrics.end() && it->second.avg) means.push_back(*it->second.avg);
  }
  return means;
}

void SetInterval(const MergedCell& baseline, const MergedCell& treatment,
                 const AggregateOptions& options, Contrast& contrast) {
  if (contrast.statistic != "avg") {
    contrast.note = "no interval for a percentile";
    return;
  }
  const bool larger = contrast.larger_is_better;
  contrast.interval =
      BootstrapSpeedup(SharesOf(baseline, contrast.tag), SharesOf(treatment, contrast.tag), larger,
                       {options.resamples, options.seed});
  if (!contrast.interval) {
    contrast.interval = RepetitionSpeedup(RepetitionMeans(baseline, contrast.tag),
                                          RepetitionMeans(treatment, contrast.tag), larger);
  }
  if (!contrast.interval) contrast.note = "no variance";
}

const MergedCell* FindMerged(const Loaded* system, const std::string& scenario,
                             int64_t concurrency) {
  if (system == nullptr) return nullptr;
  for (const MergedCell& cell : system->cells) {
    if (cell.facts.scenario == scenario && cell.facts.concurrency == concurrency) return &cell;
  }
  return nullptr;
}

Contrast Compare(const Compared& compared, const MergedCell* baseline, const MergedCell* treatment,
                 const AggregateOptions& options) {
  Contrast contrast;
  contrast.tag = compared.tag;
  contrast.statistic = compared.statistic;
  contrast.larger_is_better = LargerIsBetter(compared.tag);
  if (baseline != nullptr) {
    contrast.baseline = Statistic(&baseline->facts, compared.tag, compared.statistic);
  }
  if (treatment != nullptr) {
    contrast.treatment = Statistic(&treatment->facts, compared.tag, compared.statistic);
  }
  if (contrast.baseline && contrast.treatment) {
    SetInterval(*baseline, *treatment, options, contrast);
  }
  Complete(options.threshold, contrast);
  return contrast;
}

// Scenarios and concurrencies over all systems, so that a missing cell is a visible gap.
void SetAxes(const std::vector<Loaded>& systems, Comparison& comparison) {
  std::set<ScenarioOrder> scenarios;
  std::set<int64_t> concurrencies;
  for (const Loaded& system : systems) {
    for (const MergedCell& cell : system.cells) {
      scenarios.insert(OrderOf(cell.facts.scenario));
      concurrencies.insert(cell.facts.concurrency);
    }
  }
  for (const auto& [rank, base, rate, id] : scenarios) {
    ScenarioFacts facts{id, ScenarioLabels(id)};
    for (const Loaded& system : systems) {
      const auto labels = system.labels.find(id);
      if (labels == system.labels.end()) continue;
      for (const auto& [language, text] : labels->second) facts.label[language] = text;
      break;
    }
    comparison.scenarios.push_back(std::move(facts));
  }
  comparison.concurrencies.assign(concurrencies.begin(), concurrencies.end());
}

// A gap is a missing file only where a system has the scenario at other concurrencies.
void ReportMissing(const Loaded& system, Comparison& comparison) {
  for (const ScenarioFacts& scenario : comparison.scenarios) {
    std::vector<std::string> missing;
    for (const int64_t concurrency : comparison.concurrencies) {
      if (FindMerged(&system, scenario.id, concurrency) != nullptr) continue;
      const bool elsewhere =
          std::any_of(comparison.cells.begin(), comparison.cells.end(), [&](const CellFacts& cell) {
            return cell.scenario == scenario.id && cell.concurrency == concurrency;
          });
      if (elsewhere) missing.push_back(ConcurrencyName(concurrency).substr(1));
    }
    if (missing.empty()) continue;
    comparison.problems.push_back(fmt::format("{}: {} has no result at concurrency {}",
                                              system.input.id, scenario.id,
                                              fmt::join(missing, ", ")));
  }
}

const Loaded* FindLoaded(const std::vector<Loaded>& systems, const std::string& id) {
  for (const Loaded& system : systems) {
    if (system.input.id == id) return &system;
  }
  return nullptr;
}

void AddContrasts(const std::vector<Loaded>& systems, const AggregateOptions& options,
                  Comparison& comparison) {
  const Loaded* baseline = FindLoaded(systems, comparison.baseline);
  const Loaded* treatment = FindLoaded(systems, comparison.treatment);
  if (comparison.treatment.empty()) return;
  for (const ScenarioFacts& scenario : comparison.scenarios) {
    for (const int64_t concurrency : comparison.concurrencies) {
      const MergedCell* base = FindMerged(baseline, scenario.id, concurrency);
      const MergedCell* treated = FindMerged(treatment, scenario.id, concurrency);
      for (const Compared& compared : kCompared) {
        Contrast contrast = Compare(compared, base, treated, options);
        contrast.scenario = scenario.id;
        contrast.concurrency = concurrency;
        comparison.contrasts.push_back(std::move(contrast));
      }
    }
  }
  if (baseline != nullptr && treatment != nullptr) {
    comparison.confounders = Confounders(baseline->cells, treatment->cells);
  }
  comparison.means = GeometricMeans(comparison);
}

Role RoleOf(const std::string& id, const Comparison& comparison) {
  if (id == comparison.baseline) return Role::kBaseline;
  return id == comparison.treatment ? Role::kTreatment : Role::kReference;
}

void AddSystems(const std::vector<Loaded>& systems, Comparison& comparison) {
  for (const Loaded& system : systems) {
    SystemFacts facts = system.facts;
    facts.role = RoleOf(facts.id, comparison);
    comparison.systems.push_back(std::move(facts));
    for (const MergedCell& cell : system.cells) comparison.cells.push_back(cell.facts);
  }
  std::stable_sort(comparison.systems.begin(), comparison.systems.end(),
                   [](const SystemFacts& a, const SystemFacts& b) { return a.role < b.role; });
}

void AddTrials(const AggregateOptions& options, Comparison& comparison) {
  if (options.trials.empty()) return;
  auto trials = ReadTrials(options.trials);
  if (trials.ok()) {
    comparison.trials = *std::move(trials);
  } else {
    comparison.problems.push_back(Sentence(trials.status()) + "; the trials are left out");
  }
}

}  // namespace

absl::StatusOr<Comparison> Aggregate(const AggregateOptions& options) {
  RETURN_IF_ERROR(CheckOptions(options));
  Comparison comparison;
  comparison.threshold = options.threshold;
  SetRoles(options, comparison);
  std::vector<Loaded> systems;
  for (const SystemInput& input : options.systems) {
    auto loaded = Load(input, options, comparison);
    if (!loaded.ok()) {
      comparison.problems.push_back(Sentence(loaded.status()));
      continue;
    }
    AddUtilisation(*loaded, comparison);
    systems.push_back(*std::move(loaded));
  }
  if (systems.empty())
    return absl::NotFoundError(fmt::format("{}", fmt::join(comparison.problems, "; ")));
  SetAxes(systems, comparison);
  AddSystems(systems, comparison);
  for (const Loaded& system : systems) ReportMissing(system, comparison);
  AddContrasts(systems, options, comparison);
  AddTrials(options, comparison);
  return comparison;
}

}  // namespace fulgur::bench

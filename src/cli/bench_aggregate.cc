// `fulgur bench aggregate`: results of several systems side by side, with verdicts and a gate.
#include <cmath>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "base/status_macros.h"
#include "bench/results/aggregate.h"
#include "bench/results/comparison_json.h"
#include "bench/results/strings.h"
#include "cli/bench_results.h"
#include "fmt/format.h"
#include "fmt/ranges.h"

namespace fulgur::cli {
namespace {

namespace fs = std::filesystem;

constexpr char kUsage[] =
    "bench aggregate --system NAME=PATH[:LABEL]... [--baseline NAME] [--treatment NAME] [--json "
    "FILE]\n"
    "       [--util NAME=LOG] [--devices NAME=N] [--clock-offset NAME=SECONDS] [--trials FILE]\n"
    "       [--threshold 0.05] [--latest] [--fail-on regression] [--min-ratio R] "
    "[--max-error-percent P]";

struct Options {
  std::vector<std::string> systems, utilisation, devices, offsets;
  std::string json, trials, fail_on;
  bench::AggregateOptions aggregate;
  bench::GateOptions gate;
};

void Declare(CLI::App& app, Options& options) {
  app.add_option(
         "--system", options.systems,
         "NAME=PATH[:LABEL]: a folder of results, a manifest or a reference file; repeatable")
      ->required();
  app.add_option("--baseline", options.aggregate.baseline,
                 "what is compared with (default: first)");
  app.add_option("--treatment", options.aggregate.treatment, "what is compared (default: second)");
  app.add_option("--json", options.json, "write all numbers to this file");
  app.add_option("--util", options.utilisation, "NAME=LOG: utilisation log of a system");
  app.add_option("--devices", options.devices, "NAME=N: number of dies or GPUs of a system");
  app.add_option("--clock-offset", options.offsets,
                 "NAME=SECONDS: clock of the sampled host minus clock of the load generator");
  app.add_option("--trials", options.trials, "a fulgur-trials/1 file");
  app.add_option("--threshold", options.aggregate.threshold,
                 "what a change must exceed to count (default: 0.05)");
  app.add_flag("--latest", options.aggregate.latest,
               "of several results for a cell take the newest");
  app.add_option("--fail-on", options.fail_on, "regression: exit with 3 if a cell is slower")
      ->check(CLI::IsMember({"regression"}));
  app.add_option("--min-ratio", options.gate.min_ratio,
                 "exit with 3 if output tokens/s fall below this share of the baseline");
  app.add_option("--max-error-percent", options.gate.max_error_percent,
                 "exit with 3 if more requests of the treatment failed");
}

// The label begins at the last ':' behind the last '/'.
bench::SystemInput SystemOf(const std::string& name, const std::string& value) {
  bench::SystemInput input;
  input.id = name;
  const size_t slash = value.rfind('/');
  const size_t colon = value.rfind(':');
  const bool labelled = colon != std::string::npos &&
                        (slash == std::string::npos || colon > slash) && !fs::exists(value);
  input.path = labelled ? value.substr(0, colon) : value;
  if (labelled) input.label = value.substr(colon + 1);
  return input;
}

absl::StatusOr<bench::SystemInput*> Named(const std::string& flag, const std::string& name,
                                          bench::AggregateOptions& options) {
  for (bench::SystemInput& input : options.systems) {
    if (input.id == name) return &input;
  }
  return absl::InvalidArgumentError(
      fmt::format("{} names '{}', which no --system is called", flag, name));
}

absl::Status ReadDevices(const std::string& word, bench::AggregateOptions& options) {
  ASSIGN_OR_RETURN(const auto named, SplitNamed("--devices", word));
  ASSIGN_OR_RETURN(bench::SystemInput* const input, Named("--devices", named.first, options));
  input->devices = bench::ParseInteger(named.second);
  if (!input->devices || *input->devices < 1) {
    return absl::InvalidArgumentError(
        fmt::format("--devices '{}': a number above 0 is needed", word));
  }
  return absl::OkStatus();
}

absl::Status ReadOffset(const std::string& word, bench::AggregateOptions& options) {
  ASSIGN_OR_RETURN(const auto named, SplitNamed("--clock-offset", word));
  ASSIGN_OR_RETURN(bench::SystemInput* const input, Named("--clock-offset", named.first, options));
  const auto seconds = bench::ParseNumber(named.second);
  if (!seconds || std::fabs(*seconds) > 1e9) {
    return absl::InvalidArgumentError(fmt::format("--clock-offset '{}': seconds are needed", word));
  }
  input->clock_offset_s = *seconds;
  return absl::OkStatus();
}

absl::Status Resolve(Options& options) {
  for (const std::string& word : options.systems) {
    ASSIGN_OR_RETURN(const auto named, SplitNamed("--system", word));
    options.aggregate.systems.push_back(SystemOf(named.first, named.second));
  }
  for (const std::string& word : options.utilisation) {
    ASSIGN_OR_RETURN(const auto named, SplitNamed("--util", word));
    ASSIGN_OR_RETURN(bench::SystemInput* const input,
                     Named("--util", named.first, options.aggregate));
    input->utilisation = named.second;
  }
  for (const std::string& word : options.devices) {
    RETURN_IF_ERROR(ReadDevices(word, options.aggregate));
  }
  for (const std::string& word : options.offsets) {
    RETURN_IF_ERROR(ReadOffset(word, options.aggregate));
  }
  if (options.gate.min_ratio && !(*options.gate.min_ratio > 0 && *options.gate.min_ratio <= 1)) {
    return absl::InvalidArgumentError("--min-ratio needs a share above 0, at most 1");
  }
  options.aggregate.trials = options.trials;
  options.gate.fail_on_regression = options.fail_on == "regression";
  return absl::OkStatus();
}

std::string Cell(const std::optional<double>& value, const char* format) {
  return value ? fmt::format(fmt::runtime(format), *value) : "n/a";
}

std::string IntervalText(const bench::Contrast& contrast) {
  if (!contrast.interval) return contrast.speedup ? contrast.note : "";
  return fmt::format("{:.2f} to {:.2f}", contrast.interval->low, contrast.interval->high);
}

std::string Outcome(const bench::CellFacts* cell) {
  if (cell == nullptr || !cell->requests) return "n/a";
  return fmt::format("{}/{}{}", *cell->requests, cell->errors ? std::to_string(*cell->errors) : "?",
                     cell->valid ? "" : " !");
}

// Every cell that one of the two systems has.
void PrintTable(const bench::Comparison& comparison) {
  std::cout << fmt::format("tokens/s per user: {} against {}\n", comparison.treatment,
                           comparison.baseline)
            << fmt::format("  {:<12}{:>5}{:>10}{:>10}{:>9}  {:<14}{:<13}{:<12}{}\n", "scenario",
                           "C", "baseline", "treatment", "speed-up", "interval", "verdict",
                           "ok/errors", "ok/errors");
  for (const bench::Contrast& contrast : comparison.contrasts) {
    if (contrast.tag != bench::kHeadlineTag || contrast.statistic != "avg") continue;
    const auto* base =
        comparison.FindCell(comparison.baseline, contrast.scenario, contrast.concurrency);
    const auto* treated =
        comparison.FindCell(comparison.treatment, contrast.scenario, contrast.concurrency);
    if (base == nullptr && treated == nullptr) continue;
    std::cout << fmt::format("  {:<12}{:>5}{:>10}{:>10}{:>9}  {:<14}{:<13}{:<12}{}\n",
                             contrast.scenario, contrast.concurrency,
                             Cell(contrast.baseline, "{:.2f}"), Cell(contrast.treatment, "{:.2f}"),
                             Cell(contrast.speedup, "{:.2f}x"), IntervalText(contrast),
                             bench::VerdictName(contrast.verdict), Outcome(base), Outcome(treated));
  }
}

void PrintVerdicts(const bench::Comparison& comparison) {
  std::map<bench::Verdict, int> counts;
  for (const bench::Contrast& contrast : comparison.contrasts) {
    const bool counted = contrast.tag == bench::kHeadlineTag && contrast.statistic == "avg" &&
                         contrast.verdict != bench::Verdict::kNotAvailable;
    if (counted) ++counts[contrast.verdict];
  }
  std::cout << fmt::format("{} improved, {} neutral, {} regression(s), {} undecided\n",
                           counts[bench::Verdict::kImproved], counts[bench::Verdict::kNeutral],
                           counts[bench::Verdict::kRegression], counts[bench::Verdict::kNoise]);
  for (const bench::SpeedupMean& mean : comparison.means) {
    std::cout << fmt::format("geometric mean of {} cell(s), {}: {:.3f}x\n", mean.cells,
                             mean.scenario.empty() ? "all" : mean.scenario, mean.mean);
  }
  if (comparison.confounders.empty()) return;
  std::cout << "differences besides the treatment, so no change can be laid to it alone:\n";
  for (const bench::Confounder& confounder : comparison.confounders) {
    std::cout << fmt::format("  {}: {} -> {}\n", confounder.key,
                             confounder.baseline.empty() ? "not known" : confounder.baseline,
                             confounder.treatment.empty() ? "not known" : confounder.treatment);
  }
}

// One system alone has nothing to be compared with.
void PrintSystem(const bench::Comparison& comparison) {
  for (const bench::CellFacts& cell : comparison.cells) {
    std::cout << fmt::format("  {:<12}{:<12}{:>5}  {} tokens/s per user, {}\n", cell.system,
                             cell.scenario, cell.concurrency,
                             Cell(bench::Statistic(&cell, bench::kHeadlineTag, "avg"), "{:.2f}"),
                             Outcome(&cell));
  }
}

int Finish(const Invocation& invocation, const Options& options,
           const bench::Comparison& comparison) {
  PrintProblems(invocation, comparison.problems);
  const bench::GateResult gate = bench::ApplyGate(comparison, options.gate);
  for (const std::string& notice : gate.notices) std::cout << "notice: " << notice << "\n";
  std::cout.flush();
  for (const std::string& failure : gate.failures) {
    std::cerr << invocation.program << ": gate: " << failure << std::endl;
  }
  if (!options.json.empty()) {
    const absl::Status status = bench::WriteComparison(comparison, options.json);
    if (!status.ok()) {
      PrintProblems(invocation, {bench::Sentence(status)});
      return 1;
    }
  }
  if (!gate.passed) return kExitGate;
  return comparison.problems.empty() ? 0 : kExitPartial;
}

}  // namespace

int RunBenchAggregate(const Invocation& invocation) {
  Options options;
  CLI::App app("Compares the results of several systems.", "fulgur bench aggregate");
  Declare(app, options);
  if (const auto end = ParseWords(app, invocation, kUsage)) return *end;
  if (const absl::Status status = Resolve(options); !status.ok()) {
    return ReportMistake(invocation, kUsage, bench::Sentence(status));
  }
  const auto comparison = bench::Aggregate(options.aggregate);
  if (!comparison.ok()) {
    if (absl::IsInvalidArgument(comparison.status())) {
      return ReportMistake(invocation, kUsage, bench::Sentence(comparison.status()));
    }
    PrintProblems(invocation, {bench::Sentence(comparison.status())});
    return 1;
  }
  if (comparison->treatment.empty()) {
    PrintSystem(*comparison);
  } else {
    PrintTable(*comparison);
    PrintVerdicts(*comparison);
  }
  return Finish(invocation, options, *comparison);
}

}  // namespace fulgur::cli

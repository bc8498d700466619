// `fulgur bench aggregate`: results of several systems side by side, with verdicts and a gate.
#include <cmath>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "base/status_macros.h"
#include "bench/results/aggregate.h"
#include "bench/results/comparison_json.h"
#include "bench/results/strings.h"
#include "cli/bench_results.h"
#include "cli/words.h"
#include "fmt/format.h"
#include "fmt/ranges.h"

namespace fulgur::cli {
namespace {

namespace fs = std::filesystem;

constexpr char kUsage[] = "bench aggregate --system NAME=PATH[:LABEL]... [flags]";

constexpr FlagSpec kSystems[] = {
    {.name = "system",
     .type = FlagType::kTextList,
     .help = {"NAME=PATH[:LABEL] ...: a folder of results, a manifest or a reference file",
              "NAME=PATH[:LABEL] ……：结果目录、清单或参考文件"},
     .adds_up = true},
    {.name = "baseline",
     .help = {"what is compared with; the first by default", "基线，默认第一个"}},
    {.name = "treatment",
     .help = {"what is compared; the second by default", "对比对象，默认第二个"}},
    {.name = "util",
     .type = FlagType::kTextList,
     .help = {"NAME=LOG ...: utilisation log of a system", "NAME=LOG ……：系统的利用率日志"},
     .adds_up = true},
    {.name = "devices",
     .type = FlagType::kTextList,
     .help = {"NAME=N ...: number of dies or GPUs of a system", "NAME=N ……：系统的裸片或 GPU 数"},
     .adds_up = true},
    {.name = "clock-offset",
     .type = FlagType::kTextList,
     .help = {"NAME=SECONDS ...: clock of the sampled host minus clock of the load generator",
              "NAME=SECONDS ……：被采样主机时钟减去压测主机时钟"},
     .adds_up = true},
    {.name = "trials",
     .help = {"a file of single-factor trials (fulgur-trials/1)",
              "单因素试验文件（fulgur-trials/1）"}},
    {.name = "latest",
     .type = FlagType::kBool,
     .help = {"of several results for a cell take the newest", "同一单元有多个结果时取最新"}},
};

constexpr FlagSpec kOutcome[] = {
    {.name = "json", .help = {"write all numbers to this file", "把全部数字写入该文件"}},
    {.name = "threshold",
     .type = FlagType::kFloat,
     .default_value = "0.05",
     .help = {"what a change must exceed to count", "变化超过该值才算数"},
     .range = {.min = 0, .max = 1, .above_min = true}},
    {.name = "fail-on",
     .help = {"exit with 3 if a cell is slower", "有单元变慢时以 3 退出"},
     .choices = "regression"},
    {.name = "min-ratio",
     .type = FlagType::kFloat,
     .help = {"exit with 3 if output tokens/s fall below this share of the baseline",
              "输出吞吐低于基线的该比例时以 3 退出"},
     .range = {.min = 0, .max = 1, .above_min = true}},
    {.name = "max-error-percent",
     .type = FlagType::kFloat,
     .help = {"exit with 3 if more requests of the treatment failed",
              "对比对象的失败请求超过该比例时以 3 退出"},
     .range = {.min = 0, .max = 100}},
};

const FlagTable& AggregateFlagTable() {
  static const FlagTable table(
      {{"systems", {"Systems", "系统"}, kSystems}, {"outcome", {"Outcome", "结果"}, kOutcome}});
  return table;
}

struct Options {
  std::string json;
  bench::AggregateOptions aggregate;
  bench::GateOptions gate;
};

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

absl::Status ReadSystems(const FlagValues& values, bench::AggregateOptions& options) {
  for (const std::string& word : values.List("system")) {
    ASSIGN_OR_RETURN(const auto named, SplitNamed("--system", word));
    options.systems.push_back(SystemOf(named.first, named.second));
  }
  for (const std::string& word : values.List("util")) {
    ASSIGN_OR_RETURN(const auto named, SplitNamed("--util", word));
    ASSIGN_OR_RETURN(bench::SystemInput* const input, Named("--util", named.first, options));
    input->utilisation = named.second;
  }
  for (const std::string& word : values.List("devices")) {
    RETURN_IF_ERROR(ReadDevices(word, options));
  }
  for (const std::string& word : values.List("clock-offset")) {
    RETURN_IF_ERROR(ReadOffset(word, options));
  }
  return absl::OkStatus();
}

absl::StatusOr<Options> OptionsOf(const ParsedCommand& command) {
  const FlagValues& values = command.values;
  if (!command.positionals.empty()) {
    return absl::InvalidArgumentError(
        fmt::format("unexpected argument '{}'", command.positionals[0]));
  }
  if (!values.Given("system")) {
    return absl::InvalidArgumentError("--system NAME=PATH is needed at least once");
  }
  Options options;
  RETURN_IF_ERROR(ReadSystems(values, options.aggregate));
  options.aggregate.baseline = values.String("baseline");
  options.aggregate.treatment = values.String("treatment");
  options.aggregate.trials = values.String("trials");
  options.aggregate.threshold = values.Float("threshold");
  options.aggregate.latest = values.Bool("latest");
  options.json = values.String("json");
  options.gate.fail_on_regression = values.Given("fail-on");
  if (values.Given("min-ratio")) options.gate.min_ratio = values.Float("min-ratio");
  if (values.Given("max-error-percent")) {
    options.gate.max_error_percent = values.Float("max-error-percent");
  }
  return options;
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
                             contrast.scenario,
                             bench::ConcurrencyName(contrast.concurrency).substr(1),
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
                             cell.scenario, bench::ConcurrencyName(cell.concurrency).substr(1),
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
  const ResultCommand self{kUsage, "Compares the results of several systems.",
                           AggregateFlagTable()};
  if (ShowHelp(self, invocation)) return 0;
  const auto command = ParseCommand(self.flags, invocation.args);
  if (!command.ok()) return ReportMistake(invocation, kUsage, Message(command.status()));
  const auto options = OptionsOf(*command);
  if (!options.ok()) return ReportMistake(invocation, kUsage, Message(options.status()));
  const auto comparison = bench::Aggregate(options->aggregate);
  if (!comparison.ok()) {
    if (absl::IsInvalidArgument(comparison.status())) {
      return ReportMistake(invocation, kUsage, Message(comparison.status()));
    }
    PrintProblems(invocation, {Message(comparison.status())});
    return 1;
  }
  if (comparison->treatment.empty()) {
    PrintSystem(*comparison);
  } else {
    PrintTable(*comparison);
    PrintVerdicts(*comparison);
  }
  return Finish(invocation, *options, *comparison);
}

}  // namespace fulgur::cli

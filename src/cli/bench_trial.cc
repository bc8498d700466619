// `fulgur bench trial`: which change of a server's settings is worth keeping?
#include <unistd.h>

#include <filesystem>
#include <iostream>
#include <string>
#include <vector>

#include "base/status_macros.h"
#include "bench/load/run_bench.h"
#include "bench/trial/trial_files.h"
#include "bench/trial/trial_plan.h"
#include "bench/trial/trial_series.h"
#include "cli/bench.h"
#include "cli/bench_run_flags.h"
#include "cli/bench_run_options.h"
#include "cli/flag_help.h"
#include "cli/flag_parser.h"
#include "cli/result_folder.h"
#include "cli/shutdown_signal.h"
#include "cli/version.h"
#include "cli/words.h"
#include "fmt/format.h"
#include "fmt/ranges.h"

namespace fulgur::cli {
namespace {

namespace fs = std::filesystem;

constexpr char kUsage[] = "bench trial PLAN.json [flags]   (bench trial --help says more)";

constexpr FlagSpec kFlags[] = {
    {.name = "out",
     .default_value = "fulgur-trial",
     .help = {"folder for results, logs and tables; must be new or empty",
              "结果、日志与表格的目录；须为新目录或空目录"}},
    {.name = "only",
     .help = {"ids of the variants to try, separated by commas (default: all)",
              "只试验这些变体，id 以逗号分隔（默认：全部）"}},
    {.name = "leave",
     .default_value = "base",
     .help = {"what runs at the end: the base, or nothing", "结束时保留基准配置运行，或全部停止"},
     .choices = "base|stopped"},
    {.name = "dry-run",
     .type = FlagType::kBool,
     .help = {"check the plan and print the order of the runs", "检查计划并打印运行顺序"}},
};

const FlagTable& TrialFlagTable() {
  static const FlagTable table({{"trial", {"Flags", "参数"}, kFlags}});
  return table;
}

std::string Overview(const std::string& program) {
  return fmt::format(
      "usage: {} {}\n\n"
      "Starts a server with its base settings and with one change at a time, sends the same load\n"
      "to each, and says which changes to keep and why. The plan says how to start and stop the\n"
      "server, the settings, the changes and the load. Afterwards the base runs again.\n"
      "Exit codes: 0 everything was measured; 1 nothing could be; 2 a mistake in the command or\n"
      "the plan; 4 interrupted, or something is missing.\n\n",
      program, kUsage);
}

// The load of the plan, as `bench run` would read it.
absl::StatusOr<bench::RunOptions> LoadOf(const bench::TrialPlan& plan) {
  ASSIGN_OR_RETURN(const ParsedCommand command,
                   ParseCommand(BenchRunFlags(), JoinRepeatedFlags(plan.run)));
  if (!command.positionals.empty()) {
    return absl::InvalidArgumentError(
        fmt::format("unexpected word '{}'", command.positionals.front()));
  }
  for (const char* const fixed : {"url", "artifact-dir"}) {
    if (!command.values.Given(fixed)) continue;
    return absl::InvalidArgumentError(fmt::format("--{} is chosen by the trial", fixed));
  }
  ASSIGN_OR_RETURN(bench::RunOptions options, BuildRunOptions(command.values, BenchDialect::kRun));
  options.urls = {plan.server.url};
  options.version = Version();
  options.terminal = isatty(STDERR_FILENO) != 0;
  options.command_line = RedactedCommand("fulgur bench run", plan.run);
  return options;
}

std::string OrderLine(const bench::TrialPlan& plan) {
  std::vector<std::string> names = bench::SeriesOrder(plan);
  for (std::string& name : names) {
    if (name.empty()) name = "base";
  }
  return fmt::format("{} runs: {}", names.size(), fmt::join(names, ", "));
}

void PrintCell(const bench::CellResult& result, const std::string& metric) {
  const auto found = result.cell.metrics.find(metric);
  const bool known = found != result.cell.metrics.end() && found->second.avg.has_value();
  std::cerr << fmt::format("  {} c{}: {} {}{}\n", result.cell.scenario,
                           result.cell.concurrency.value_or(0), metric,
                           known ? fmt::format("{:.2f}", *found->second.avg) : "n/a",
                           result.valid() ? "" : " (not valid)");
}

struct Trial {
  bench::TrialPlan plan;
  bench::RunOptions load;
  bench::SeriesOptions series;
};

absl::StatusOr<Trial> PrepareTrial(const ParsedCommand& command) {
  if (command.positionals.size() != 1) {
    return absl::InvalidArgumentError("one plan is needed: a fulgur-trial-plan/1 file");
  }
  const std::string& file = command.positionals.front();
  Trial trial;
  ASSIGN_OR_RETURN(trial.plan, bench::ReadTrialPlan(file));
  if (command.values.Given("only")) {
    const std::string only = command.values.String("only");
    RETURN_IF_ERROR(bench::KeepVariants(SplitWords(only, ','), trial.plan));
  }
  auto load = LoadOf(trial.plan);
  if (!load.ok()) {
    return absl::InvalidArgumentError(
        fmt::format("\"run\" of {}: {}", file, Message(load.status())));
  }
  trial.load = *std::move(load);
  trial.series.folder = command.values.String("out");
  trial.series.leave_base = command.values.String("leave") == "base";
  return trial;
}

absl::Status RunTrial(const Trial& trial, bench::SeriesResult& series) {
  RETURN_IF_ERROR(PrepareResultFolder(trial.series.folder));
  ShutdownSignal signal;
  signal.Arm();
  const auto interrupted = [&signal] { return signal.WaitFor(absl::ZeroDuration()); };
  const auto say = [](const std::string& line) { std::cerr << line << std::endl; };
  say(OrderLine(trial.plan));
  const bench::SeriesHooks hooks{
      .interrupted = interrupted, .say = say, .measure = [&](const fs::path& folder) {
        bench::RunOptions load = trial.load;
        load.artifact_dir = folder.string();
        return bench::RunBench(load, {.interrupted = interrupted,
                                      .say = say,
                                      .on_cell = [&](const bench::CellResult& result) {
                                        PrintCell(result, trial.plan.metric);
                                      }});
      }};
  ASSIGN_OR_RETURN(series, bench::RunSeries(trial.plan, trial.series, hooks));
  return absl::OkStatus();
}

int Report(const Trial& trial, const bench::SeriesResult& series) {
  const auto decided = bench::DecideAll(trial.plan, series);
  const absl::Status written =
      bench::WriteTrialFiles(trial.plan, series, decided, trial.series.folder);
  if (!written.ok()) return ReportFailure("bench trial", written);
  std::cout << bench::TrialMarkdown(trial.plan, series, decided);
  std::cout << fmt::format("\nwritten: {} and trials.md\n",
                           (trial.series.folder / "trials.json").string());
  if (series.interrupted) std::cout << "interrupted: what was measured so far is kept\n";
  const bool whole = series.runs.size() == bench::SeriesOrder(trial.plan).size();
  return whole && series.ended.ok() && !series.interrupted ? 0 : kExitPartial;
}

}  // namespace

int RunBenchTrial(const Invocation& invocation) {
  for (const std::string& arg : invocation.args) {
    if (arg != "--help" && arg != "-h") continue;
    std::cout << Overview(invocation.program) << HelpForUsedFlags(TrialFlagTable());
    return 0;
  }
  const auto command = ParseCommand(TrialFlagTable(), invocation.args);
  if (!command.ok()) return ReportMistake(invocation, kUsage, Message(command.status()));
  const auto trial = PrepareTrial(*command);
  if (!trial.ok()) return ReportMistake(invocation, kUsage, Message(trial.status()));
  if (command->values.Bool("dry-run")) {
    std::cout << OrderLine(trial->plan) << "\n";
    return 0;
  }
  bench::SeriesResult series;
  const absl::Status status = RunTrial(*trial, series);
  if (!status.ok()) return ReportFailure("bench trial", status);
  return Report(*trial, series);
}

}  // namespace fulgur::cli

// `fulgur bench run`: from a command line to measured cells.
#include <unistd.h>

#include <iostream>
#include <optional>
#include <string>

#include "base/status_macros.h"
#include "bench/load/max_rate.h"
#include "bench/load/run_bench.h"
#include "bench/load/vllm_result.h"
#include "cli/bench.h"
#include "cli/bench_run_flags.h"
#include "cli/bench_run_options.h"
#include "cli/flag_help.h"
#include "cli/flag_parser.h"
#include "cli/shutdown_signal.h"
#include "cli/version.h"
#include "cli/words.h"
#include "fmt/format.h"

namespace fulgur::cli {
namespace {

using bench::CellResult;

std::string Usage(BenchDialect dialect) {
  const std::string name = dialect == BenchDialect::kRun      ? "run"
                           : dialect == BenchDialect::kAiperf ? "profile"
                                                              : "serve";
  return fmt::format("bench {} [flags]   (bench {} --help lists the flags)", name, name);
}

std::string Overview(const std::string& program) {
  std::string text = fmt::format(
      "usage: {} bench run [flags]\n\n"
      "Sends load to a server with the OpenAI API and writes what was measured as aiperf does.\n"
      "Command lines of `aiperf profile` work as `bench profile`, those of `vllm bench serve` as\n"
      "`bench serve`. Exit codes: 0 all was measured; 1 nothing could be; 2 a mistake in the\n"
      "command; 4 something is missing or not valid; the rest was written.\n\nShipped suites:\n",
      program);
  for (const auto& [name, help] : bench::ShippedSuites()) {
    text += fmt::format("  {:<10}{}\n", name, help);
  }
  return text + "\n";
}

bool AsksForHelp(std::span<const std::string> args) {
  for (const std::string& arg : args) {
    if (arg == "--help" || arg == "-h") return true;
  }
  return false;
}

void WarnAboutFlagsWithoutEffect(const FlagValues& values) {
  for (const auto& [name, value] : values.given()) {
    const FlagSpec& flag = values.table().Get(name);
    if (flag.effect != FlagEffect::kExplained) continue;
    std::cerr << fmt::format("--{} has no effect: {}\n", name, flag.reason.en);
  }
}

std::string Number(const bench::MetricMap& metrics, const char* tag, int percentile = 0) {
  const auto found = metrics.find(tag);
  if (found == metrics.end()) return "n/a";
  if (percentile == 0) return found->second.avg ? fmt::format("{:.2f}", *found->second.avg) : "n/a";
  const auto value = found->second.percentiles.find(percentile);
  return value == found->second.percentiles.end() ? "n/a" : fmt::format("{:.2f}", value->second);
}

std::string CellName(const CellResult& result) {
  if (!result.cell.concurrency) return result.cell.scenario;
  return fmt::format("{} c{}", result.cell.scenario, *result.cell.concurrency);
}

void PrintCell(const CellResult& result) {
  const bench::MetricMap& metrics = result.cell.metrics;
  std::cout << fmt::format(
      "{}: {} requests, {} failed | {} tok/s | per user {} tok/s | TTFT {} ms (p99 {}) | ITL {} ms "
      "| latency {} ms | client lag p99 {} ms\n",
      CellName(result), result.valid_requests, result.failed_requests,
      Number(metrics, "output_token_throughput"),
      Number(metrics, "output_token_throughput_per_user"), Number(metrics, "time_to_first_token"),
      Number(metrics, "time_to_first_token", 99), Number(metrics, "inter_token_latency"),
      Number(metrics, "request_latency"), Number(metrics, "fulgur_client_lag", 99));
  for (const std::string& reason : result.invalid_reasons) {
    std::cout << fmt::format("  not valid: {}\n", reason);
  }
  for (const std::string& note : result.notes) std::cout << fmt::format("  note: {}\n", note);
  std::cout.flush();
}

// What a search for the highest rate came to.
void PrintMaxRate(const bench::RunOptions& options, const bench::MaxRate& found) {
  for (const bench::RateStep& step : found.steps) {
    std::cout << fmt::format("{:10.4g} requests/s: {:6.2f} % of {} within the objectives{}\n",
                             step.rate, step.attained * 100, step.requests,
                             step.held ? "" : ", too few");
  }
  if (!found.stopped_because.empty()) {
    std::cout << "the search is not through: " << found.stopped_because << "\n";
  }
  if (!found.highest) {
    std::cout << "no rate was found at which enough requests meet their objectives\n";
    return;
  }
  std::cout << fmt::format("highest rate with {:g} % within the objectives: {:.4g} requests/s{}\n",
                           options.slo_attainment * 100, *found.highest,
                           found.lowest ? fmt::format("; {:.4g} is too many", *found.lowest)
                                        : ", and no limit was found");
}

// Runs the cells, or the search that the options ask for.
absl::StatusOr<bench::RunSummary> Measure(const bench::RunOptions& options,
                                          const bench::RunHooks& hooks) {
  if (!options.find_max_rate) return bench::RunBench(options, hooks);
  ASSIGN_OR_RETURN(bench::MaxRate found, bench::FindMaxRate(options, hooks));
  PrintMaxRate(options, found);
  return std::move(found.summary);
}

// A rate that was too high is what a search looks for; only an answer is asked of it.
bool IsComplete(const bench::RunOptions& options, const bench::RunSummary& summary) {
  return options.find_max_rate ? !summary.interrupted : summary.complete();
}

int Report(const bench::RunOptions& options, const bench::RunSummary& summary) {
  if (summary.interrupted) {
    std::cout << fmt::format("interrupted: what {} cells measured so far is kept in {}\n",
                             summary.cells.size(), options.artifact_dir);
  } else {
    std::cout << fmt::format("{} cells measured, {} skipped; results in {}\n", summary.cells.size(),
                             summary.skipped, options.artifact_dir);
  }
  for (const std::string& failure : summary.failed_cells) {
    std::cout << "not measured: " << failure << "\n";
  }
  std::cout.flush();
  return IsComplete(options, summary) ? 0 : kExitPartial;
}

absl::Status SaveForVllm(const FlagValues& values, const bench::RunOptions& options,
                         const CellResult& result) {
  if (!values.Bool("save-result")) return absl::OkStatus();
  bench::VllmResultOptions file;
  file.folder = values.Has("result-dir") ? values.String("result-dir") : ".";
  file.name = values.String("result-filename");
  file.label = values.String("label");
  file.backend = values.Has("backend") ? values.String("backend") : "openai";
  file.detailed = values.Bool("save-detailed");
  file.metadata = values.List("metadata");
  return bench::WriteVllmResult(file, options, result);
}

int Run(const Invocation& invocation, BenchDialect dialect) {
  if (AsksForHelp(invocation.args)) {
    std::cout << Overview(invocation.program) << HelpForUsedFlags(BenchRunFlags());
    return 0;
  }
  const auto mistake = [&](const std::string& sentence) {
    return ReportMistake(invocation, Usage(dialect), sentence);
  };
  const auto command = ParseCommand(BenchRunFlags(), JoinRepeatedFlags(invocation.args));
  if (!command.ok()) return mistake(Message(command.status()));
  if (!command->positionals.empty()) {
    return mistake(fmt::format("unexpected argument '{}'", command->positionals.front()));
  }
  for (const std::string& warning : command->warnings) std::cerr << warning << "\n";
  WarnAboutFlagsWithoutEffect(command->values);
  auto options = BuildRunOptions(command->values, dialect);
  if (!options.ok()) return mistake(Message(options.status()));
  options->version = Version();
  options->terminal = isatty(STDERR_FILENO) != 0;
  const std::string usage = Usage(dialect);
  options->command_line = RedactedCommand(
      fmt::format("{} {}", invocation.program, usage.substr(0, usage.find(" ["))), invocation.args);

  ShutdownSignal signal;
  signal.Arm();
  absl::Status file_status;
  const bench::RunHooks hooks{
      .interrupted = [&signal] { return signal.WaitFor(absl::ZeroDuration()); },
      .say = [](const std::string& line) { std::cerr << line << std::endl; },
      .on_cell =
          [&](const CellResult& result) {
            PrintCell(result);
            file_status.Update(SaveForVllm(command->values, *options, result));
          }};
  const auto summary = Measure(*options, hooks);
  const absl::Status status = summary.ok() ? file_status : summary.status();
  if (!status.ok()) {
    std::cerr << invocation.program << ": error: " << status.message() << std::endl;
    return 1;
  }
  return Report(*options, *summary);
}

}  // namespace

int RunBenchRun(const Invocation& invocation) { return Run(invocation, BenchDialect::kRun); }
int RunBenchProfile(const Invocation& invocation) { return Run(invocation, BenchDialect::kAiperf); }
int RunBenchServe(const Invocation& invocation) { return Run(invocation, BenchDialect::kVllm); }

}  // namespace fulgur::cli

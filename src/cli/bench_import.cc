// `fulgur bench import`: results of other tools as artifact folders of aiperf's form.
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "bench/results/export_folder.h"
#include "bench/results/strings.h"
#include "cli/bench_results.h"
#include "cli/words.h"
#include "fmt/format.h"

namespace fulgur::cli {
namespace {

namespace fs = std::filesystem;

constexpr char kUsage[] = "bench import PATH... --out FOLDER [--scenario NAME]";

constexpr FlagSpec kFlags[] = {
    {.name = "out",
     .help = {"folder for SCENARIO-cN/profile_export_aiperf.json",
              "输出目录，内含 SCENARIO-cN/profile_export_aiperf.json"}},
    {.name = "scenario",
     .help = {"name of the scenario, instead of guessing it", "场景名称（不再自动猜测）"}},
};

const FlagTable& ImportFlagTable() {
  static const FlagTable table({{"import", {"Flags", "参数"}, kFlags}});
  return table;
}

struct Options {
  std::vector<std::string> paths;
  std::string out;
  std::string scenario;
};

// Folders get a number behind their name where two results are of the same cell.
fs::path FolderFor(const bench::Result& result, const Options& options,
                   std::map<std::string, int>& taken) {
  const bench::Cell& cell = result.cell;
  const std::string scenario = !options.scenario.empty() ? options.scenario
                               : cell.scenario.empty()   ? "custom"
                                                         : cell.scenario;
  std::string name =
      cell.concurrency ? fmt::format("{}-c{}", scenario, *cell.concurrency) : scenario;
  const int number = ++taken[name];
  if (number > 1) name = fmt::format("{}.{}", number, name);
  return fs::path(options.out) / name;
}

int Run(const Invocation& invocation, const Options& options) {
  std::vector<std::string> problems;
  std::map<std::string, int> taken;
  int written = 0;
  for (bench::Result& result : ReadPaths(options.paths, problems)) {
    if (!options.scenario.empty()) result.cell.scenario = options.scenario;
    const fs::path folder = FolderFor(result, options, taken);
    const absl::Status status = bench::ExportFolder(result, folder);
    if (!status.ok()) {
      problems.push_back(bench::Sentence(status));
      continue;
    }
    ++written;
    std::cout << result.cell.source << ": " << Describe(result) << " -> " << folder.string()
              << std::endl;
  }
  PrintProblems(invocation, problems);
  if (written == 0) return 1;
  return problems.empty() ? 0 : kExitPartial;
}

bool IsFileName(const std::string& name) {
  return name.find('/') == std::string::npos && name != "." && name != "..";
}

absl::StatusOr<Options> OptionsOf(const ParsedCommand& command) {
  Options options{command.positionals, command.values.String("out"),
                  command.values.String("scenario")};
  if (options.paths.empty()) {
    return absl::InvalidArgumentError("name result files, or folders with results");
  }
  if (options.out.empty()) return absl::InvalidArgumentError("--out FOLDER is needed");
  if (!IsFileName(options.scenario)) {
    return absl::InvalidArgumentError(
        fmt::format("--scenario '{}' cannot be part of a file name", options.scenario));
  }
  return options;
}

}  // namespace

int RunBenchImport(const Invocation& invocation) {
  const ResultCommand self{kUsage,
                           "Turns results of vLLM bench, SGLang, guidellm, evalscope, AISBench, "
                           "InferenceX, ds4-bench or aiperf\ninto aiperf's artifact folders.",
                           ImportFlagTable()};
  if (ShowHelp(self, invocation)) return 0;
  const auto command = ParseCommand(self.flags, invocation.args);
  if (!command.ok()) return ReportMistake(invocation, kUsage, Message(command.status()));
  const auto options = OptionsOf(*command);
  if (!options.ok()) return ReportMistake(invocation, kUsage, Message(options.status()));
  return Run(invocation, *options);
}

}  // namespace fulgur::cli

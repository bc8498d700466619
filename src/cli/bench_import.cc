// `fulgur bench import`: results of other tools as artifact folders of aiperf's form.
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "bench/results/export_folder.h"
#include "bench/results/strings.h"
#include "cli/bench_results.h"
#include "fmt/format.h"

namespace fulgur::cli {
namespace {

namespace fs = std::filesystem;

constexpr char kUsage[] = "bench import PATH... --out FOLDER [--scenario NAME]";

struct Options {
  std::vector<std::string> paths;
  std::string out;
  std::string scenario;
};

void Declare(CLI::App& app, Options& options) {
  app.add_option("PATH", options.paths,
                 "results of vLLM bench, SGLang, guidellm, evalscope, AISBench or aiperf")
      ->required();
  app.add_option("--out", options.out, "folder for SCENARIO-cN/profile_export_aiperf.json")
      ->required();
  app.add_option("--scenario", options.scenario, "name of the scenario, instead of guessing it");
}

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

}  // namespace

int RunBenchImport(const Invocation& invocation) {
  Options options;
  CLI::App app("Turns results of other tools into aiperf's artifact folders.",
               "fulgur bench import");
  Declare(app, options);
  if (const auto end = ParseWords(app, invocation, kUsage)) return *end;
  if (!IsFileName(options.scenario)) {
    return ReportMistake(
        invocation, kUsage,
        fmt::format("--scenario '{}' cannot be part of a file name", options.scenario));
  }
  return Run(invocation, options);
}

}  // namespace fulgur::cli

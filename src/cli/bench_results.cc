#include "cli/bench_results.h"

#include <algorithm>
#include <filesystem>

#include "bench/results/result_folder.h"
#include "bench/results/result_reader.h"
#include "bench/results/scenarios.h"
#include "bench/results/strings.h"
#include "cli/flag_help.h"
#include "fmt/format.h"

namespace fulgur::cli {
namespace {

namespace fs = std::filesystem;

void AddFile(const fs::path& file, const std::string& relative, std::vector<bench::Result>& results,
             std::vector<std::string>& problems) {
  auto read = bench::ReadResultFile(file);
  if (!read.ok()) {
    problems.push_back(bench::Sentence(read.status()) + "; it was skipped");
    return;
  }
  const bench::PathHints hints = bench::HintsOf(relative);
  for (bench::Result& result : *read) {
    bench::Cell& cell = result.cell;
    if (cell.scenario.empty()) cell.scenario = hints.scenario;
    if (cell.scenario.empty()) cell.scenario = bench::ScenarioByLengths(result);
    if (!cell.concurrency) cell.concurrency = hints.concurrency;
    problems.insert(problems.end(), result.problems.begin(), result.problems.end());
    results.push_back(std::move(result));
  }
}

}  // namespace

std::vector<bench::Result> ReadPaths(const std::vector<std::string>& paths,
                                     std::vector<std::string>& problems) {
  std::vector<bench::Result> results;
  std::error_code ignored;
  for (const std::string& path : paths) {
    if (!fs::is_directory(path, ignored)) {
      const fs::path file = path;
      AddFile(file, (file.parent_path().filename() / file.filename()).string(), results, problems);
      continue;
    }
    const auto files = bench::CandidateFiles(path, problems);
    if (files.empty()) problems.push_back(fmt::format("{} holds no result file", path));
    for (const fs::path& file : files) {
      AddFile(file, fs::relative(file, fs::path(path).parent_path(), ignored).string(), results,
              problems);
    }
  }
  return results;
}

std::string Describe(const bench::Result& result) {
  const bench::Cell& cell = result.cell;
  std::string text = cell.scenario.empty() ? "custom" : cell.scenario;
  if (cell.concurrency) text += fmt::format(", concurrency {}", *cell.concurrency);
  const auto kind = bench::KindName(cell.kind);
  return fmt::format("{} ({}{}{})", text, kind, cell.tool_version.empty() ? "" : " ",
                     cell.tool_version);
}

absl::StatusOr<std::pair<std::string, std::string>> SplitNamed(const std::string& flag,
                                                               const std::string& word) {
  const size_t equals = word.find('=');
  if (equals == std::string::npos || equals == 0 || equals + 1 == word.size()) {
    return absl::InvalidArgumentError(fmt::format("{} '{}' is not NAME=VALUE", flag, word));
  }
  return std::pair(word.substr(0, equals), word.substr(equals + 1));
}

bool ShowHelp(const ResultCommand& command, const Invocation& invocation) {
  const bool asked =
      std::any_of(invocation.args.begin(), invocation.args.end(),
                  [](const std::string& arg) { return arg == "--help" || arg == "-h"; });
  if (asked) {
    std::cout << "usage: " << invocation.program << " " << command.usage << "\n\n"
              << command.summary << "\n\n"
              << HelpForUsedFlags(command.flags);
  }
  return asked;
}

void PrintProblems(const Invocation& invocation, const std::vector<std::string>& problems) {
  for (const std::string& problem : problems) {
    std::cerr << invocation.program << ": warning: " << problem << std::endl;
  }
}

}  // namespace fulgur::cli

// `fulgur bench report`: workbook and report from a comparison.
#include <filesystem>
#include <iostream>
#include <string>
#include <vector>

#include "bench/report/report_files.h"
#include "bench/report/write_report.h"
#include "bench/results/comparison_json.h"
#include "cli/bench_results.h"
#include "cli/flag_parser.h"
#include "cli/words.h"
#include "fmt/format.h"
#include "fmt/ranges.h"

namespace fulgur::cli {
namespace {

namespace fs = std::filesystem;

constexpr char kUsage[] = "bench report COMPARISON.json [flags]";

constexpr FlagSpec kFlags[] = {
    {.name = "out",
     .help = {"folder for report.xlsx, report.md and report.html, all three",
              "report.xlsx、report.md 与 report.html 三者的输出目录"}},
    {.name = "xlsx", .help = {"write the workbook to this file", "工作簿的输出文件"}},
    {.name = "md",
     .help = {"write Markdown to this file; with two languages the Chinese one goes beside it, as "
              "NAME.zh.md",
              "Markdown 的输出文件；两种语言时中文版写入同目录的 NAME.zh.md"}},
    {.name = "html",
     .help = {"write one HTML page, pictures inside, to this file",
              "单个 HTML 页面（内含图形）的输出文件"}},
    {.name = "lang",
     .default_value = "both",
     .help = {"languages of report and headers", "报告与表头的语言"},
     .choices = "en|zh|both"},
    {.name = "extra-sheets",
     .type = FlagType::kBool,
     .help = {"add sheets with all metrics, percentiles, errors and time slices",
              "工作簿另加全部指标、分位数、错误与时间片的工作表"}},
    {.name = "accuracy",
     .type = FlagType::kTextList,
     .help = {"SYSTEM=FILE ...: scores of `fulgur eval` to put beside the speed",
              "SYSTEM=FILE ……：与速度并列的 `fulgur eval` 得分"}},
};

const FlagTable& ReportFlagTable() {
  static const FlagTable table({{"report", {"Flags", "参数"}, kFlags}});
  return table;
}

struct Options {
  fs::path input;
  std::vector<std::string> accuracy;
  bench::ReportFiles files;
};

std::vector<bench::Language> LanguagesOf(const std::string& word) {
  if (word == "en") return {bench::Language::kEnglish};
  if (word == "zh") return {bench::Language::kChinese};
  return {bench::Language::kEnglish, bench::Language::kChinese};
}

absl::StatusOr<Options> OptionsOf(const ParsedCommand& command) {
  if (command.positionals.size() != 1) {
    return absl::InvalidArgumentError(
        "name one comparison: what `fulgur bench aggregate --json` wrote, or a folder with "
        "comparison.json");
  }
  const FlagValues& values = command.values;
  const fs::path folder = values.String("out");
  const auto choose = [&](const char* flag, const char* name) -> fs::path {
    if (values.Given(flag)) return values.String(flag);
    return folder.empty() ? fs::path() : folder / name;
  };
  Options options;
  options.input = command.positionals[0];
  options.accuracy = values.List("accuracy");
  options.files = {choose("xlsx", "report.xlsx"), choose("md", "report.md"),
                   choose("html", "report.html"), values.Bool("extra-sheets"),
                   LanguagesOf(values.String("lang"))};
  if (options.files.workbook.empty() && options.files.markdown.empty() &&
      options.files.html.empty()) {
    return absl::InvalidArgumentError(
        "nothing to write: give --out FOLDER, or --xlsx, --md or --html");
  }
  return options;
}

std::string CommandLine(const Invocation& invocation) {
  return fmt::format("{} bench report {}", invocation.program,
                     fmt::join(invocation.args.begin(), invocation.args.end(), " "));
}

// Scores that can be read; a sentence for each that cannot.
std::vector<bench::AccuracyScore> ReadScores(const Options& options,
                                             const bench::Comparison& comparison,
                                             std::vector<std::string>& problems) {
  std::vector<bench::AccuracyScore> scores;
  for (const std::string& word : options.accuracy) {
    const size_t equals = word.find('=');
    const std::string system = word.substr(0, equals);
    if (equals == std::string::npos || comparison.FindSystem(system) == nullptr) {
      problems.push_back(fmt::format(
          "--accuracy '{}' names no system of the comparison; the form is SYSTEM=FILE", word));
      continue;
    }
    auto score = bench::ReadAccuracy(system, word.substr(equals + 1));
    if (score.ok()) {
      scores.push_back(*std::move(score));
    } else {
      problems.push_back(std::string(score.status().message()));
    }
  }
  return scores;
}

int Write(const Invocation& invocation, const Options& options) {
  std::error_code ignored;
  fs::path input = options.input;
  if (fs::is_directory(input, ignored)) input /= "comparison.json";
  const auto comparison = bench::ReadComparison(input);
  if (!comparison.ok()) {
    std::cerr << invocation.program << ": error: " << comparison.status().message() << std::endl;
    return 1;
  }
  std::vector<std::string> problems;
  const bench::ReportInput facts{*comparison, bench::ReadRequests(*comparison, input.parent_path()),
                                 ReadScores(options, *comparison, problems),
                                 bench::ReadSlices(*comparison, input.parent_path()),
                                 CommandLine(invocation)};
  const auto written = bench::WriteReport(facts, options.files);
  problems.insert(problems.end(), written.problems.begin(), written.problems.end());
  for (const fs::path& file : written.files) {
    if (file.parent_path().filename().string().ends_with("_files")) continue;
    std::cout << "wrote " << file.string() << "\n";
  }
  std::cout.flush();
  PrintProblems(invocation, problems);
  if (written.files.empty()) return 1;
  return problems.empty() ? 0 : kExitPartial;
}

}  // namespace

int RunBenchReport(const Invocation& invocation) {
  const ResultCommand self{kUsage,
                           "Writes workbook (five sheets), Markdown and HTML of a comparison.",
                           ReportFlagTable()};
  if (ShowHelp(self, invocation)) return 0;
  const auto command = ParseCommand(self.flags, invocation.args);
  if (!command.ok()) return ReportMistake(invocation, kUsage, Message(command.status()));
  const auto options = OptionsOf(*command);
  if (!options.ok()) return ReportMistake(invocation, kUsage, Message(options.status()));
  return Write(invocation, *options);
}

}  // namespace fulgur::cli

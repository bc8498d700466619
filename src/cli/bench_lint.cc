// `fulgur bench lint`: what is wrong or misleading in result files, whoever wrote them.
#include <string>
#include <vector>

#include "bench/results/lint.h"
#include "bench/results/strings.h"
#include "bench/results/text_file.h"
#include "cli/bench_results.h"
#include "cli/words.h"
#include "fmt/format.h"
#include "nlohmann/json.hpp"

namespace fulgur::cli {
namespace {

using OrderedJson = nlohmann::ordered_json;

constexpr char kUsage[] = "bench lint PATH... [flags]";

constexpr FlagSpec kFlags[] = {
    {.name = "all",
     .type = FlagType::kBool,
     .help = {"also print the rules that hold", "同时打印通过的规则"}},
    {.name = "strict",
     .type = FlagType::kBool,
     .help = {"a warning counts as a failure", "警告视为失败"}},
    {.name = "max-error-percent",
     .type = FlagType::kFloat,
     .default_value = "1",
     .help = {"more failed requests than this are a failure", "失败请求超过该比例即为失败"},
     .range = {.min = 0, .max = 100}},
    {.name = "fixed-isl",
     .type = FlagType::kBool,
     .help = {"the plan promised prompts of one length", "计划中的输入长度应当一致"}},
    {.name = "json", .help = {"also write the findings to this file", "同时把检查结果写入该文件"}},
};

const FlagTable& LintFlagTable() {
  static const FlagTable table({{"lint", {"Flags", "参数"}, kFlags}});
  return table;
}

struct Options {
  std::vector<std::string> paths;
  bool all = false;
  bool strict = false;
  std::string json;
  bench::LintOptions lint;
};

struct Counts {
  int64_t failed = 0;
  int64_t warned = 0;
};

void Print(const bench::Result& result, const std::vector<bench::LintFinding>& findings,
           const Options& options, Counts& counts) {
  std::cout << result.cell.source << ": " << Describe(result) << "\n";
  for (const bench::LintFinding& finding : findings) {
    if (finding.severity == bench::Severity::kFail) ++counts.failed;
    if (finding.severity == bench::Severity::kWarn) ++counts.warned;
    // The list of errors belongs to a finding, though it is none itself.
    const bool shown =
        options.all || finding.severity != bench::Severity::kPass || finding.rule == "L18";
    if (shown) {
      std::cout << fmt::format("  {:<5}{:<5}{}\n", bench::SeverityName(finding.severity),
                               finding.rule, finding.text);
    }
  }
}

OrderedJson ToJson(const bench::Result& result, const std::vector<bench::LintFinding>& findings) {
  OrderedJson json = {{"path", result.cell.source}, {"scenario", result.cell.scenario}};
  if (result.cell.concurrency) json["concurrency"] = *result.cell.concurrency;
  json["findings"] = OrderedJson::array();
  for (const bench::LintFinding& finding : findings) {
    json["findings"].push_back({{"rule", finding.rule},
                                {"severity", bench::SeverityName(finding.severity)},
                                {"text", finding.text}});
  }
  return json;
}

int Finish(const Invocation& invocation, const Options& options, const OrderedJson& json,
           const Counts& counts, const std::vector<std::string>& problems) {
  PrintProblems(invocation, problems);
  const size_t results = json["results"].size();
  std::cout << fmt::format("{} result(s): {} failure(s), {} warning(s)", results, counts.failed,
                           counts.warned)
            << std::endl;
  if (!options.json.empty()) {
    const absl::Status status = bench::WriteTextFile(
        options.json, json.dump(2, ' ', false, OrderedJson::error_handler_t::replace) + "\n");
    if (!status.ok()) {
      PrintProblems(invocation, {bench::Sentence(status)});
      return 1;
    }
  }
  if (results == 0 || counts.failed > 0 || (options.strict && counts.warned > 0)) return 1;
  return problems.empty() ? 0 : kExitPartial;
}

int Run(const Invocation& invocation, const Options& options) {
  std::vector<std::string> problems;
  Counts counts;
  OrderedJson json = {{"format", "fulgur-lint/1"}, {"results", OrderedJson::array()}};
  for (const bench::Result& result : ReadPaths(options.paths, problems)) {
    const auto findings = bench::Lint(result, options.lint);
    Print(result, findings, options, counts);
    json["results"].push_back(ToJson(result, findings));
  }
  json["problems"] = problems;
  return Finish(invocation, options, json, counts, problems);
}

}  // namespace

int RunBenchLint(const Invocation& invocation) {
  const ResultCommand self{
      kUsage, "Finds what is wrong or misleading in result files, or in folders with results.",
      LintFlagTable()};
  if (ShowHelp(self, invocation)) return 0;
  const auto command = ParseCommand(self.flags, invocation.args);
  if (!command.ok()) return ReportMistake(invocation, kUsage, Message(command.status()));
  if (command->positionals.empty()) {
    return ReportMistake(invocation, kUsage, "name result files, or folders with results");
  }
  const FlagValues& values = command->values;
  return Run(invocation, {.paths = command->positionals,
                          .all = values.Bool("all"),
                          .strict = values.Bool("strict"),
                          .json = values.String("json"),
                          .lint = {.max_error_percent = values.Float("max-error-percent"),
                                   .fixed_input_length = values.Bool("fixed-isl")}});
}

}  // namespace fulgur::cli

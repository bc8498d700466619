// `fulgur bench lint`: what is wrong or misleading in result files, whoever wrote them.
#include <algorithm>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "bench/results/lint.h"
#include "bench/results/strings.h"
#include "bench/results/text_file.h"
#include "cli/bench_results.h"
#include "fmt/format.h"
#include "nlohmann/json.hpp"

namespace fulgur::cli {
namespace {

using OrderedJson = nlohmann::ordered_json;

constexpr char kUsage[] =
    "bench lint PATH... [--all] [--strict] [--max-error-percent P] [--fixed-isl] [--json FILE]";

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

void Declare(CLI::App& app, Options& options) {
  app.add_option("PATH", options.paths, "result files, or folders with results")->required();
  app.add_flag("--all", options.all, "also print the rules that hold");
  app.add_flag("--strict", options.strict, "a warning counts as a failure");
  app.add_option("--max-error-percent", options.lint.max_error_percent,
                 "more failed requests than this are a failure (default: 1)");
  app.add_flag("--fixed-isl", options.lint.fixed_input_length,
               "the plan promised prompts of one length");
  app.add_option("--json", options.json, "also write the findings to this file");
}

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
  Options options;
  CLI::App app("Finds what is wrong or misleading in result files.", "fulgur bench lint");
  Declare(app, options);
  if (const auto end = ParseWords(app, invocation, kUsage)) return *end;
  return Run(invocation, options);
}

}  // namespace fulgur::cli

#include "cli/bench.h"

#include <iostream>
#include <string>
#include <string_view>
#include <vector>

#include "cli/near_miss.h"
#include "fmt/format.h"
#include "fmt/ranges.h"

namespace fulgur::cli {
namespace {

struct BenchCommand {
  std::string_view name;
  int (*run)(const Invocation&);
  std::string_view help;
};

constexpr BenchCommand kBenchCommands[] = {
    {"run", &RunBenchRun, "send load to a server and write what was measured"},
    {"profile", &RunBenchProfile, "the same for command lines of aiperf profile"},
    {"serve", &RunBenchServe, "the same for command lines of vllm bench serve"},
    {"import", &RunBenchImport, "turn results of other tools into aiperf's form"},
    {"lint", &RunBenchLint, "find what is wrong or misleading in results"},
    {"aggregate", &RunBenchAggregate, "compare the results of several systems"},
    {"report", &RunBenchReport, "write workbook and report of a comparison"},
    {"trial", &RunBenchTrial, "try changes of a server's settings, one at a time"},
    {"demo", &RunBenchDemo, "measure two pretend servers and report, to see what it looks like"},
};

std::string Overview(const std::string& program) {
  std::string text = fmt::format("usage: {} bench SUBCOMMAND ...\n\n", program);
  for (const BenchCommand& command : kBenchCommands) {
    text += fmt::format("  {:<10}{}\n", command.name, command.help);
  }
  return text + fmt::format("\n{} bench SUBCOMMAND --help says more.\n", program);
}

int ReportUnknown(const std::string& program, const std::string& word) {
  std::vector<std::string_view> names;
  for (const BenchCommand& command : kBenchCommands) names.push_back(command.name);
  const auto near = NearMiss(word, names);
  return ReportMistake({program, {}}, "bench SUBCOMMAND ...",
                       fmt::format("unknown subcommand 'bench {}'; {}", word,
                                   near ? fmt::format("did you mean {}?", *near)
                                        : fmt::format("there are {}", fmt::join(names, ", "))));
}

}  // namespace

int RunBench(const Invocation& invocation) {
  if (invocation.args.empty()) {
    std::cerr << Overview(invocation.program);
    return 2;
  }
  const std::string& word = invocation.args.front();
  if (word == "--help" || word == "-h") {
    std::cout << Overview(invocation.program);
    return 0;
  }
  for (const BenchCommand& command : kBenchCommands) {
    if (command.name == word) return command.run({invocation.program, invocation.args.subspan(1)});
  }
  return ReportUnknown(invocation.program, word);
}

}  // namespace fulgur::cli

// The program: finds the subcommand and runs it.
#include <filesystem>
#include <iostream>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cli/flag_help.h"
#include "cli/near_miss.h"
#include "cli/subcommands.h"
#include "cli/version.h"
#include "cli/words.h"
#include "fmt/format.h"

namespace fulgur::cli {
namespace {

int RunVersion(const Invocation&) {
  std::cout << "fulgur " << Version() << std::endl;
  return 0;
}

int RunHelp(const Invocation& invocation);

struct Subcommand {
  std::string_view name;
  int (*run)(const Invocation&);
  std::string_view help;
};

constexpr Subcommand kSubcommands[] = {
    {"serve", &RunServe, "serve a model behind the OpenAI API"},
    {"plan", &RunPlan, "say whether a model fits a machine, and how fast it will be"},
    {"chat", &RunChat, "talk to a server from the terminal"},
    {"bench", &RunBench, "measure a server: load, results, reports"},
    {"sample", &RunSample, "sample the utilisation of accelerators and host"},
    {"eval", &RunEval, "ask a server questions with known answers"},
    {"deploy", &RunDeploy, "write and check deployments with vLLM-Ascend"},
    {"version", &RunVersion, "print the version"},
    {"help", &RunHelp, "print this; --markdown en|zh prints the docs page of the serve flags"},
};

const Subcommand* Find(std::string_view name) {
  for (const Subcommand& subcommand : kSubcommands) {
    if (subcommand.name == name) return &subcommand;
  }
  return nullptr;
}

std::string Overview(const std::string& program) {
  std::string text = fmt::format(
      "Fulgur {}: DeepSeek-V4 on CPUs, behind the OpenAI API.\n\nusage: {} SUBCOMMAND ...\n\n",
      Version(), program);
  for (const Subcommand& subcommand : kSubcommands) {
    text += fmt::format("  {:<10}{}\n", subcommand.name, subcommand.help);
  }
  return text + fmt::format("\n{} SUBCOMMAND --help says more.\n", program);
}

int RunHelp(const Invocation& invocation) {
  const auto& args = invocation.args;
  if (args.empty()) {
    std::cout << Overview(invocation.program);
    return 0;
  }
  if (args[0] == "--markdown" && args.size() == 2 && (args[1] == "en" || args[1] == "zh")) {
    const Language language = args[1] == "en" ? Language::kEnglish : Language::kChinese;
    std::cout << FlagsPage(ServeFlags(), ServeEnvironment(), language);
    return 0;
  }
  const Subcommand* subcommand = Find(args[0]);
  if (args.size() != 1 || subcommand == nullptr || subcommand->run == &RunHelp) {
    return ReportMistake(invocation, "help [SUBCOMMAND | --markdown en|zh]",
                         fmt::format("no help on '{}'", fmt::join(args, " ")));
  }
  const std::string help = "--help";
  return subcommand->run({invocation.program, {&help, 1}});
}

int ReportUnknown(const std::string& program, const std::string& word) {
  std::vector<std::string_view> names;
  for (const Subcommand& subcommand : kSubcommands) names.push_back(subcommand.name);
  const auto near = NearMiss(word, names);
  const std::string sentence =
      fmt::format("unknown subcommand '{}'; {}", word,
                  near ? fmt::format("did you mean {}?", *near)
                       : fmt::format("there are {}", fmt::join(names, ", ")));
  return ReportMistake({program, {}}, "SUBCOMMAND ...", sentence);
}

int Run(const std::string& program, std::span<const std::string> words) {
  if (words.empty()) {
    std::cerr << Overview(program);
    return 2;
  }
  const std::string& word = words.front();
  if (word == "--help" || word == "-h") return RunHelp({program, {}});
  if (word == "--version" || word == "-v") return RunVersion({program, {}});
  const Subcommand* subcommand = Find(word);
  if (subcommand == nullptr) return ReportUnknown(program, word);
  return subcommand->run({program, words.subspan(1)});
}

}  // namespace

int ReportMistake(const Invocation& invocation, const std::string& usage,
                  const std::string& sentence) {
  std::cerr << "usage: " << invocation.program << " " << usage << "\n"
            << invocation.program << ": error: " << sentence << std::endl;
  return 2;
}

int ReportFailure(std::string_view subcommand, const absl::Status& error) {
  std::cerr << "fulgur " << subcommand << ": " << Message(error) << std::endl;
  return 1;
}

}  // namespace fulgur::cli

int main(int argc, char** argv) {
  const std::vector<std::string> words(argv, argv + argc);
  const std::string program =
      words.empty() ? "fulgur" : std::filesystem::path(words[0]).filename().string();
  return fulgur::cli::Run(program, std::span(words).subspan(words.empty() ? 0 : 1));
}

// `fulgur plan`: whether a model fits a machine and how fast it will be, before anything is loaded.
#include <iostream>
#include <string>
#include <string_view>

#include "base/machine.h"
#include "base/status_macros.h"
#include "cli/flag_help.h"
#include "cli/flag_parser.h"
#include "cli/plan_options.h"
#include "cli/plan_text.h"
#include "cli/subcommands.h"
#include "cli/words.h"
#include "fmt/format.h"

namespace fulgur::cli {
namespace {

constexpr std::string_view kUsage = "plan MODEL [--machine this|FILE] [flags]";

std::string Help(const std::string& program) {
  return fmt::format(
      "usage: {} {}\n\nSays whether a model fits a machine, what a token, a request and a restart "
      "point take,\nand how fast it will be, from config.json and the headers of the files alone. "
      "MODEL is the\nfolder of a checkpoint, or of its config.json. Exit code 1: it does not "
      "fit.\n\n{}",
      program, kUsage, HelpForUsedFlags(PlanFlags()));
}

absl::StatusOr<PlanText> Plan(PlanOptions options, const base::Machine& machine) {
  ASSIGN_OR_RETURN(const plan::ModelShape model, ReadModelShape(options));
  ASSIGN_OR_RETURN(const plan::MachineFigures figures, ReadMachine(options, machine));
  return DescribePlan(options, model, figures);
}

}  // namespace

int RunPlan(const Invocation& invocation) {
  for (const std::string& arg : invocation.args) {
    if (arg != "--help" && arg != "-h") continue;
    std::cout << Help(invocation.program);
    return 0;
  }
  const base::Machine machine = base::DetectMachine();
  const auto command = ParseCommand(PlanFlags(), invocation.args);
  const auto options = command.ok()
                           ? BuildPlanOptions(command->values, command->positionals, machine)
                           : absl::StatusOr<PlanOptions>(command.status());
  const auto plan =
      options.ok() ? Plan(*options, machine) : absl::StatusOr<PlanText>(options.status());
  if (!plan.ok()) return ReportMistake(invocation, std::string(kUsage), Message(plan.status()));
  std::cout << plan->text << std::flush;
  return plan->fits ? 0 : 1;
}

}  // namespace fulgur::cli

// The subcommands of the program. Each takes its arguments without program and subcommand name,
// writes to the standard streams and returns the exit code: 0, 1 for what failed at run time, 2 for
// a mistake in the command.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "absl/status/status.h"

namespace fulgur::cli {

struct Invocation {
  std::string program;  // how the binary was called, such as "fulgur" or "vllm"
  std::span<const std::string> args;
};

int RunServe(const Invocation& invocation);
int RunPlan(const Invocation& invocation);
int RunChat(const Invocation& invocation);
int RunSample(const Invocation& invocation);
int RunEval(const Invocation& invocation);
int RunDeploy(const Invocation& invocation);
int RunBench(const Invocation& invocation);

// Reports a mistake in a command line: usage, then the sentence. Returns 2.
int ReportMistake(const Invocation& invocation, const std::string& usage,
                  const std::string& sentence);

// Reports what failed at run time, under the subcommand's name. Returns 1.
int ReportFailure(std::string_view subcommand, const absl::Status& error);

}  // namespace fulgur::cli

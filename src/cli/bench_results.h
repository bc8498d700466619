// What the subcommands on result files share.
#pragma once

#include <iostream>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "bench/results/result.h"
#include "cli/bench.h"
#include "cli/flag_parser.h"

namespace fulgur::cli {

// All results under the paths, files or folders; a sentence for each file that cannot be read.
std::vector<bench::Result> ReadPaths(const std::vector<std::string>& paths,
                                     std::vector<std::string>& problems);

// "chat, concurrency 4 (aiperf 0.13.0)".
std::string Describe(const bench::Result& result);

// "NAME=VALUE" split; an error that names the flag if there is no '=' or no name.
absl::StatusOr<std::pair<std::string, std::string>> SplitNamed(const std::string& flag,
                                                               const std::string& word);

// A subcommand as its help tells it.
struct ResultCommand {
  const char* usage;
  const char* summary;
  const FlagTable& flags;
};

// Help was asked for, and was printed.
bool ShowHelp(const ResultCommand& command, const Invocation& invocation);

// Prints one warning a line.
void PrintProblems(const Invocation& invocation, const std::vector<std::string>& problems);

}  // namespace fulgur::cli

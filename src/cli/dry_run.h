// `fulgur serve --dry-run`: what a command does here, and what memory it takes.
#pragma once

#include <string>

#include "base/machine.h"
#include "cli/flag_parser.h"
#include "cli/serve_options.h"

namespace fulgur::cli {

// Every given flag and known environment variable with its effect, then the memory plan.
std::string DescribeCommand(const ParsedCommand& command, const Environment& environment,
                            ServeOptions options, const base::Machine& machine);

}  // namespace fulgur::cli

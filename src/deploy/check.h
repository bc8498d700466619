// The preflight check of a deployment: a command line, a script, or a folder of scripts.
//
// Nothing is run. Scripts are read as a shell would read them, here-documents and `bash -c`
// included; in a folder, containers, starters and nodes are looked at together.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "deploy/finding.h"
#include "deploy/serve_command.h"

namespace fulgur::deploy {

struct CheckReport {
  Findings findings;     // by file and line
  int num_commands = 0;  // serve commands that were looked at
};

// `words` as a program gets them: [vllm] [serve] MODEL --flag ... `image` may be empty.
CheckReport CheckCommandLine(std::span<const std::string> words, const std::string& image,
                             const FlagSyntax& syntax);

// A script or a folder. Errors: nothing there, not readable, no serve command in it.
absl::StatusOr<CheckReport> CheckPath(const std::filesystem::path& path, const std::string& image,
                                      const FlagSyntax& syntax);

}  // namespace fulgur::deploy

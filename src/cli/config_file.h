// Reads the YAML file of --config: keys are flag names.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "cli/flag_parser.h"

namespace fulgur::cli {

struct ConfigFile {
  std::vector<FlagOccurrence> flags;
  std::vector<std::string> positionals;  // the key `model`
};

// true and false set a switch on and off; a list gives several values; a map becomes JSON; null
// leaves the default. Errors name the file and the key.
absl::StatusOr<ConfigFile> ReadConfigFile(const FlagTable& table, const std::string& path);

}  // namespace fulgur::cli

// The flags of `fulgur bench run`, `bench profile` (aiperf's) and `bench serve` (vLLM's).
#pragma once

#include <span>
#include <string>
#include <vector>

#include "cli/flag_table.h"

namespace fulgur::cli {

const FlagTable& BenchRunFlags();

// Flags that may be repeated, each adding to the ones before, are brought together into one.
std::vector<std::string> JoinRepeatedFlags(std::span<const std::string> args);

}  // namespace fulgur::cli

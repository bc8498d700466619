// The groups that make up the flags of `fulgur bench run`.
#pragma once

#include "cli/flag_table.h"

namespace fulgur::cli {

FlagGroup BenchLoadFlags();  // what is sent
FlagGroup BenchRateFlags();  // when it is sent

}  // namespace fulgur::cli

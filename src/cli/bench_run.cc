#include <iostream>

#include "cli/bench.h"

namespace fulgur::cli {

int RunBenchRun(const Invocation& invocation) {
  std::cerr << invocation.program << ": error: bench run is not built yet" << std::endl;
  return 1;
}

}  // namespace fulgur::cli

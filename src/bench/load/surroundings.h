// A look at tokenizer and server before anything is measured.
#pragma once

#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "bench/load/cell_plan.h"

namespace fulgur::bench {

// Lets the process open as many connections as are needed, waits for the server, asks for its model
// and, in corrected runs, sends it one request. `say` gets warnings. Errors: too few open files
// allowed, no server, no such tokenizer, no model to choose.
absl::StatusOr<Surroundings> LookAround(const RunOptions& options,
                                        const std::function<void(const std::string&)>& say);

}  // namespace fulgur::bench

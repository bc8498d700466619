// What `fulgur plan` was asked for.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/machine.h"
#include "cli/flag_table.h"
#include "cli/flag_values.h"
#include "engine/model_engine.h"
#include "plan/machine_figures.h"
#include "plan/model_shape.h"

namespace fulgur::cli {

struct PlanOptions {
  std::string model;    // a checkpoint folder, or one with a config.json alone
  std::string machine;  // "this", or a file
  int threads = 1;      // of this machine
  std::vector<int64_t> users;
  std::vector<int64_t> contexts;  // none: the usual ones that the model allows
  int64_t chunk = 0;              // prompt tokens of a step
  bool stages = false;            // also where the time of a step goes
};

const FlagTable& PlanFlags();

// Errors are one sentence with the flag.
absl::StatusOr<PlanOptions> BuildPlanOptions(const FlagValues& values,
                                             const std::vector<std::string>& positionals,
                                             const base::Machine& machine);

// The model, its formats as stored if there are tensors, else as published. Fills in the contexts
// and checks them against the model.
absl::StatusOr<plan::ModelShape> ReadModelShape(PlanOptions& options);

// From the file, or measured here for about two seconds.
absl::StatusOr<plan::MachineFigures> ReadMachine(const PlanOptions& options,
                                                 const base::Machine& machine);

// What a server for these users would be started with.
engine::ModelEngineOptions EngineOptionsOf(const PlanOptions& options, int cores);

}  // namespace fulgur::cli

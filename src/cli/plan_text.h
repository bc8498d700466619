// What `fulgur plan` prints.
#pragma once

#include <string>

#include "cli/plan_options.h"
#include "plan/machine_figures.h"
#include "plan/model_shape.h"

namespace fulgur::cli {

struct PlanText {
  bool fits = false;  // the weights, and one user with the smallest context
  std::string text;
};

// The options must be complete (ReadModelShape).
PlanText DescribePlan(const PlanOptions& options, const plan::ModelShape& model,
                      const plan::MachineFigures& machine);

}  // namespace fulgur::cli

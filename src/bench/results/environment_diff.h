// What two systems differ in besides the treatment.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "bench/results/merge_cells.h"

namespace fulgur::bench {

// The properties that all cells of a system share.
std::map<std::string, std::string> CommonEnvironment(const std::vector<MergedCell>& cells);

// Differences between cells of the same scenario and concurrency, each named once. The properties
// that describe the treatment itself ("speculative ...") are no confounders. A property that only
// one side states is one if it decides speed by itself: engine, image, driver, batch limits.
std::vector<Confounder> Confounders(const std::vector<MergedCell>& baseline,
                                    const std::vector<MergedCell>& treatment);

}  // namespace fulgur::bench

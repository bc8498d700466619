// From results to the cells of a comparison: repetitions are averaged, duplicates told.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "bench/results/comparison.h"
#include "bench/results/result_folder.h"

namespace fulgur::bench {

// A cell with the results it was made of; the requests are needed for intervals.
struct MergedCell {
  CellFacts facts;
  std::vector<FoundResult> results;
};

struct MergeOptions {
  std::string system;
  bool latest = false;
};

// One entry per scenario and concurrency. Several results are repetitions if they lie in
// profile_runs or have different trial numbers; else they are a duplicate: with `latest` the newest
// is taken, otherwise the cell is left out and a problem says so.
std::vector<MergedCell> MergeCells(std::vector<FoundResult> results, const MergeOptions& options,
                                   std::vector<std::string>& problems);

}  // namespace fulgur::bench

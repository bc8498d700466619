// What came of a trial: a table for people, and a fulgur-trials/1 file for `bench aggregate` and
// the report.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "bench/trial/decide.h"
#include "bench/trial/trial_plan.h"
#include "bench/trial/trial_series.h"

namespace fulgur::bench {

// A variant with the decision over it, in the plan's order.
struct DecidedVariant {
  Variant variant;
  Decision decision;
};

std::vector<DecidedVariant> DecideAll(const TrialPlan& plan, const SeriesResult& series);

// The table of decisions, then every cell, then how it was decided, as Markdown.
std::string TrialMarkdown(const TrialPlan& plan, const SeriesResult& series,
                          const std::vector<DecidedVariant>& decided);

// Writes trials.json and trials.md into the folder.
absl::Status WriteTrialFiles(const TrialPlan& plan, const SeriesResult& series,
                             const std::vector<DecidedVariant>& decided,
                             const std::filesystem::path& folder);

}  // namespace fulgur::bench

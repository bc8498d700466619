// The parts of lint: rules on the summary, on the requests, and on the plan.
#pragma once

#include <vector>

#include "bench/results/lint.h"

namespace fulgur::bench {

void LintSummary(const Result& result, const LintOptions& options, std::vector<LintFinding>& into);
void LintRequests(const Result& result, std::vector<LintFinding>& into);

// Requests that a server must refuse because they ask for fewer tokens than their minimum.
void LintPlan(const Result& result, std::vector<LintFinding>& into);

}  // namespace fulgur::bench

// What a comparison shows, by rule: a finding is there only if its condition holds.
#pragma once

#include <string>
#include <vector>

#include "bench/report/document.h"
#include "bench/report/facts.h"
#include "bench/report/report_input.h"
#include "bench/report/text.h"

namespace fulgur::bench {

struct Finding {
  std::string rule;  // "best_cell", "regressions" ...
  std::string text;
  Tone tone = Tone::kPlain;
};

std::vector<Finding> FindFindings(const Facts& facts, const ReportInput& input, Voice say);

// What can be advised from the verdicts, one sentence each.
std::vector<std::string> Advise(const Facts& facts, Voice say);

// Names of the properties in which baseline and treatment differ.
std::vector<std::string> ConfounderNames(const Comparison& comparison);

// "4 x 400, 1 x 503"
std::string ErrorCodes(const CellFacts& cell);

}  // namespace fulgur::bench

#include "bench/results/lint.h"

#include "bench/results/lint_rules.h"

namespace fulgur::bench {

std::vector<LintFinding> Lint(const Result& result, const LintOptions& options) {
  std::vector<LintFinding> findings;
  LintSummary(result, options, findings);
  LintRequests(result, findings);
  LintPlan(result, findings);
  return findings;
}

std::string_view SeverityName(Severity severity) {
  switch (severity) {
    case Severity::kPass:
      return "pass";
    case Severity::kWarn:
      return "warn";
    case Severity::kFail:
      return "fail";
  }
  return "";
}

}  // namespace fulgur::bench

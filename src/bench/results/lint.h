// Rules that tell what is wrong or misleading in a result, whoever wrote its file.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "bench/results/result.h"

namespace fulgur::bench {

enum class Severity { kPass, kWarn, kFail };

struct LintFinding {
  std::string rule;  // "L1" ... "L18", or "P14" for pitfalls that show in the requests
  Severity severity = Severity::kPass;
  std::string text;  // one sentence with the numbers
};

struct LintOptions {
  double max_error_percent = 1.0;   // more failed requests than this fail L9
  bool fixed_input_length = false;  // the plan promised equal prompts, even if the file is silent
};

// Applies every rule whose inputs the result has; a rule without its inputs yields no finding.
std::vector<LintFinding> Lint(const Result& result, const LintOptions& options);

// "pass", "warn", "fail".
std::string_view SeverityName(Severity severity);

}  // namespace fulgur::bench

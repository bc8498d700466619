// What the preflight check found: how bad, where, why, and what to do.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace fulgur::deploy {

enum class Severity { kError, kWarning };  // will not start or answers wrongly; may disappoint

struct Finding {
  Severity severity = Severity::kError;
  std::string rule;  // a short name, such as "loader-prefetch-conflict"
  std::string file;  // empty: the command line
  int line = 0;      // 0: unknown
  std::string why;
  std::string fix;

  bool operator==(const Finding&) const = default;
};

using Findings = std::vector<Finding>;

}  // namespace fulgur::deploy

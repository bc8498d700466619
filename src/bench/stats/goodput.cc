#include "bench/stats/goodput.h"

#include <array>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/status_macros.h"

namespace fulgur::bench {
namespace {

constexpr std::array<std::pair<std::string_view, std::string_view>, 3> kShortNames = {{
    {"ttft", "time_to_first_token"},
    {"tpot", "inter_token_latency"},  // vLLM's TPOT is the mean over the tokens of one request
    {"e2el", "request_latency"},
}};

std::string FullName(std::string_view name) {
  for (const auto& [brief, full] : kShortNames) {
    if (name == brief) return std::string(full);
  }
  return std::string(name);
}

absl::StatusOr<Objective> ParseObjective(const std::string& text) {
  const std::pair<std::string, std::string> parts = absl::StrSplit(text, absl::MaxSplits(':', 1));
  Objective objective;
  if (parts.first.empty() || !absl::SimpleAtod(parts.second, &objective.limit) ||
      !(objective.limit > 0)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--goodput: \"", text, "\" is not METRIC:LIMIT with a positive limit, such as ttft:500"));
  }
  objective.tag = FullName(parts.first);
  objective.larger_is_better = objective.tag.find("throughput") != std::string::npos;
  return objective;
}

}  // namespace

absl::StatusOr<std::vector<Objective>> ParseGoodput(const std::string& text) {
  std::vector<Objective> objectives;
  for (const std::string& part :
       std::vector<std::string>(absl::StrSplit(text, ' ', absl::SkipWhitespace()))) {
    ASSIGN_OR_RETURN(Objective objective, ParseObjective(part));
    objectives.push_back(std::move(objective));
  }
  return objectives;
}

bool MeetsAll(const RequestMetrics& metrics, const std::vector<Objective>& objectives) {
  for (const Objective& objective : objectives) {
    if (!metrics.Has(objective.tag)) return false;
    const double value = metrics.Get(objective.tag, 0.0);
    if (objective.larger_is_better ? value < objective.limit : value > objective.limit)
      return false;
  }
  return true;
}

}  // namespace fulgur::bench

// The plan may ask for what no server grants: a constant min_tokens beside varying output lengths.
#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <utility>

#include "bench/results/aiperf_draws.h"
#include "bench/results/lint_rules.h"
#include "bench/results/strings.h"
#include "fmt/format.h"

namespace fulgur::bench {
namespace {

constexpr int64_t kMostDraws = 1'000'000;

// A number, or a number in quotes. "osl" and the like follow each request's own length.
std::optional<double> MinTokens(const RunPlan& plan) {
  for (const char* name : {"min_tokens", "min_new_tokens"}) {
    const auto it = plan.extra.find(name);
    if (it == plan.extra.end()) continue;
    std::string_view text = it->second;
    if (text.size() > 2 && text.front() == '"') text = text.substr(1, text.size() - 2);
    return ParseNumber(text);
  }
  return std::nullopt;
}

std::vector<LengthPair> OutputLengths(const RunPlan& plan) {
  if (!plan.sequence_distribution.empty()) return plan.sequence_distribution;
  if (!plan.output_length) return {};
  return {{plan.input_length.value_or(LengthSpec()), *plan.output_length, 1.0}};
}

std::optional<int64_t> PlannedRequests(const Result& result) {
  for (const PlannedPhase& phase : result.plan.phases) {
    if (phase.name == "profiling" && phase.requests) return phase.requests;
  }
  return result.plan.dataset_entries;
}

// The share of a normal distribution that lies below a limit.
double ShareBelow(const LengthSpec& length, double limit) {
  if (length.stddev <= 0) return length.mean < limit ? 1.0 : 0.0;
  return 0.5 * std::erfc((length.mean - limit) / (length.stddev * std::sqrt(2.0)));
}

double ExpectedShare(const std::vector<LengthPair>& lengths, double limit) {
  double share = 0, weight = 0;
  for (const LengthPair& pair : lengths) {
    share += pair.probability * ShareBelow(pair.output, limit);
    weight += pair.probability;
  }
  return weight > 0 ? share / weight : 0.0;
}

struct Refusals {
  int64_t count = 0;
  std::string how_known;
};

// Best from the bodies themselves, then from aiperf's own draws, else from the distribution.
Refusals CountRefusals(const Result& result, double min_tokens, int64_t requests) {
  if (result.impossible_requests) {
    return {*result.impossible_requests, "as inputs.json shows, "};
  }
  const RunPlan& plan = result.plan;
  if (!plan.sequence_distribution.empty() && plan.random_seed && requests <= kMostDraws) {
    const auto draws = AiperfLengthDraws(plan.sequence_distribution, *plan.random_seed, requests);
    const auto below =
        std::count_if(draws.begin(), draws.end(), [min_tokens](const LengthDraw& draw) {
          return static_cast<double>(draw.output) < min_tokens;
        });
    return {below,
            fmt::format("with seed {}, aiperf draws lengths by which exactly ", *plan.random_seed)};
  }
  const double share = ExpectedShare(OutputLengths(plan), min_tokens);
  return {std::llround(share * static_cast<double>(requests)), "by the distribution, about "};
}

std::string DescribeLengths(const std::vector<LengthPair>& lengths) {
  const LengthSpec& output = lengths.front().output;
  return output.stddev > 0
             ? fmt::format("drawn around {} with a spread of {}", output.mean, output.stddev)
             : fmt::format("{}", output.mean);
}

int64_t RefusedWith400(const Cell& cell) {
  int64_t count = 0;
  for (const ErrorGroup& group : cell.errors) {
    if (group.code == 400) count += group.count;
  }
  return count;
}

std::string Consequence(const Result& result, const Refusals& refusals, int64_t requests) {
  const int64_t refused = RefusedWith400(result.cell);
  const int64_t rest = requests - refusals.count;
  if (refused == 0) {
    return fmt::format("so at most {} of {} requests can be measured", rest, requests);
  }
  if (refused == refusals.count) {
    return fmt::format(
        "and {} is the very number of errors with code 400 here: the workload itself "
        "causes them, no option of the server does, and all numbers rest on the other "
        "{} requests",
        refused, rest);
  }
  return fmt::format("which explains {} of the {} errors with code 400 here",
                     std::min(refused, refusals.count), refused);
}

}  // namespace

void LintPlan(const Result& result, std::vector<LintFinding>& into) {
  const auto min_tokens = MinTokens(result.plan);
  const auto lengths = OutputLengths(result.plan);
  const auto requests = PlannedRequests(result);
  if (!min_tokens || lengths.empty() || !requests || *requests <= 0) return;
  const Refusals refusals = CountRefusals(result, *min_tokens, *requests);
  if (refusals.count <= 0) {
    into.push_back({"P11", Severity::kPass, "no request asks for fewer tokens than min_tokens"});
    return;
  }
  into.push_back(
      {"P11", Severity::kFail,
       fmt::format(
           "min_tokens is {} for every request while output lengths are {}: {}{} of {} "
           "requests ask for fewer tokens than min_tokens and are refused with code 400, {}. "
           "Give each request its own length as min_tokens (min_tokens:osl)",
           *min_tokens, DescribeLengths(lengths), refusals.how_known, refusals.count, *requests,
           Consequence(result, refusals, *requests))});
}

}  // namespace fulgur::bench

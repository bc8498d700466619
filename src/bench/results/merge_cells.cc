#include "bench/results/merge_cells.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>
#include <utility>

#include "bench/results/error_groups.h"
#include "fmt/format.h"
#include "fmt/ranges.h"

namespace fulgur::bench {
namespace {

using Group = std::vector<FoundResult>;

// A statistic of the mean needs every repetition to have it.
template <typename Get>
auto MeanOf(const std::vector<const MetricBlock*>& blocks, Get get) -> std::optional<double> {
  double sum = 0.0;
  for (const MetricBlock* block : blocks) {
    const std::optional<double> value = get(*block);
    if (!value) return std::nullopt;
    sum += *value;
  }
  return sum / static_cast<double>(blocks.size());
}

MetricBlock MeanBlock(const std::vector<const MetricBlock*>& blocks) {
  MetricBlock mean;
  mean.unit = blocks.front()->unit;
  mean.avg = MeanOf(blocks, [](const MetricBlock& block) { return block.avg; });
  mean.min = MeanOf(blocks, [](const MetricBlock& block) { return block.min; });
  mean.max = MeanOf(blocks, [](const MetricBlock& block) { return block.max; });
  mean.std = MeanOf(blocks, [](const MetricBlock& block) { return block.std; });
  mean.sum = MeanOf(blocks, [](const MetricBlock& block) { return block.sum; });
  const auto count = MeanOf(blocks, [](const MetricBlock& block) {
    return block.count ? std::optional(static_cast<double>(*block.count)) : std::nullopt;
  });
  if (count) mean.count = std::llround(*count);
  for (const auto& [q, value] : blocks.front()->percentiles) {
    const auto percentile = MeanOf(blocks, [q = q](const MetricBlock& block) {
      const auto it = block.percentiles.find(q);
      return it == block.percentiles.end() ? std::nullopt : std::optional(it->second);
    });
    if (percentile) mean.percentiles[q] = *percentile;
  }
  return mean;
}

void SetRepetitionStd(const std::string& tag, const std::vector<const MetricBlock*>& blocks,
                      const MetricBlock& mean, CellFacts& facts) {
  if (!mean.avg || blocks.size() < 2) return;
  double squares = 0.0;
  for (const MetricBlock* block : blocks) squares += std::pow(*block->avg - *mean.avg, 2);
  facts.repetition_std[tag] = std::sqrt(squares / static_cast<double>(blocks.size() - 1));
}

// Metrics that only some repetitions have are left out: their mean would be of other runs.
void MergeMetrics(const Group& group, CellFacts& facts) {
  for (const auto& [tag, first] : group.front().result.cell.metrics) {
    std::vector<const MetricBlock*> blocks;
    for (const FoundResult& found : group) {
      const auto it = found.result.cell.metrics.find(tag);
      if (it != found.result.cell.metrics.end()) blocks.push_back(&it->second);
    }
    if (blocks.size() != group.size()) continue;
    facts.metrics[tag] = group.size() == 1 ? first : MeanBlock(blocks);
    SetRepetitionStd(tag, blocks, facts.metrics[tag], facts);
  }
}

// aiperf leaves the count of errors out when there was none.
std::optional<int64_t> ErrorsOf(const Result& result) {
  const MetricMap& metrics = result.cell.metrics;
  const auto it = metrics.find("error_request_count");
  if (it != metrics.end() && it->second.avg && std::fabs(*it->second.avg) < 1e15) {
    return std::llround(*it->second.avg);
  }
  const bool silent = result.cell.kind == ResultKind::kAiperf && metrics.contains("request_count");
  return silent ? std::optional<int64_t>(0) : std::nullopt;
}

std::optional<int64_t> RequestsOf(const Result& result) {
  const auto it = result.cell.metrics.find("request_count");
  if (it == result.cell.metrics.end() || !it->second.avg || std::fabs(*it->second.avg) > 1e15) {
    return std::nullopt;
  }
  return std::llround(*it->second.avg);
}

void Add(const std::optional<int64_t>& value, std::optional<int64_t>& sum) {
  if (value) sum = sum.value_or(0) + *value;
}

void AddValidity(const Result& result, CellFacts& facts) {
  for (LintFinding& finding : Lint(result, LintOptions())) {
    if (finding.severity == Severity::kFail) {
      facts.valid = false;
      facts.reasons.push_back(fmt::format("{}: {}", finding.rule, finding.text));
    }
    facts.lint.push_back(std::move(finding));
  }
}

CellFacts FactsOf(const Group& group, const std::string& system) {
  CellFacts facts;
  const Cell& first = group.front().result.cell;
  facts.system = system;
  facts.scenario = first.scenario;
  facts.concurrency = *first.concurrency;
  facts.repetitions = static_cast<int32_t>(group.size());
  facts.phases = first.phases;
  facts.utilisation = group.front().result.utilisation;
  std::vector<ErrorGroup> errors;
  for (const FoundResult& found : group) {
    const Cell& cell = found.result.cell;
    Add(RequestsOf(found.result), facts.requests);
    Add(ErrorsOf(found.result), facts.errors);
    errors.insert(errors.end(), cell.errors.begin(), cell.errors.end());
    AddValidity(found.result, facts);
    facts.provenance.push_back(found.provenance);
  }
  for (const ErrorGroup& error : errors) facts.errors_by_code[CodeName(error)] += error.count;
  facts.error_groups = GroupForPeople(errors);
  MergeMetrics(group, facts);
  return facts;
}

bool AreRepetitions(const Group& group) {
  if (std::all_of(group.begin(), group.end(), [](const FoundResult& r) { return r.repeated; })) {
    return true;
  }
  std::set<int32_t> trials;
  for (const FoundResult& found : group) trials.insert(found.result.cell.repetition);
  return trials.size() == group.size();
}

// False if the cell has to be left out.
bool Settle(const MergeOptions& options, Group& group, std::vector<std::string>& problems) {
  if (group.size() < 2 || AreRepetitions(group)) return true;
  if (options.latest) {
    const auto newest = std::max_element(
        group.begin(), group.end(),
        [](const FoundResult& a, const FoundResult& b) { return a.modified_s < b.modified_s; });
    group = {*newest};
    return true;
  }
  std::vector<std::string> paths;
  for (const FoundResult& found : group) paths.push_back(found.provenance.path);
  const Cell& cell = group.front().result.cell;
  problems.push_back(fmt::format(
      "{}: {} at concurrency {} has {} results, which are no repetitions: {}; the cell is left "
      "out. "
      "Remove all but one, or take the newest with --latest",
      options.system, cell.scenario, ConcurrencyName(*cell.concurrency).substr(1), group.size(),
      fmt::join(paths, ", ")));
  return false;
}

}  // namespace

std::vector<MergedCell> MergeCells(std::vector<FoundResult> results, const MergeOptions& options,
                                   std::vector<std::string>& problems) {
  std::map<std::pair<std::string, int64_t>, Group> groups;
  for (FoundResult& found : results) {
    const Cell& cell = found.result.cell;
    groups[{cell.scenario, *cell.concurrency}].push_back(std::move(found));
  }
  std::vector<MergedCell> merged;
  for (auto& [key, group] : groups) {
    if (!Settle(options, group, problems)) continue;
    CellFacts facts = FactsOf(group, options.system);
    merged.push_back({std::move(facts), std::move(group)});
  }
  return merged;
}

}  // namespace fulgur::bench

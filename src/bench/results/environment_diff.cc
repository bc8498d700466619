#include "bench/results/environment_diff.h"

#include <algorithm>
#include <array>
#include <set>
#include <string_view>

namespace fulgur::bench {
namespace {

using Environment = std::map<std::string, std::string>;

constexpr std::array<std::string_view, 4> kTreatment = {"speculative", "speculation", "drafter",
                                                        "label"};
constexpr std::array<std::string_view, 6> kDecisive = {
    "engine", "engine_version", "image", "driver", "max_num_seqs", "prefix_caching"};

bool StartsWithAny(const std::string& key, const auto& names) {
  return std::any_of(names.begin(), names.end(),
                     [&key](std::string_view name) { return key.starts_with(name); });
}

std::string ValueOf(const Environment& environment, const std::string& key) {
  const auto it = environment.find(key);
  return it == environment.end() ? "" : it->second;
}

const Environment& EnvironmentOf(const MergedCell& cell) {
  return cell.results.front().result.cell.environment;
}

void Compare(const Environment& baseline, const Environment& treatment,
             std::set<std::pair<std::string, std::pair<std::string, std::string>>>& differences) {
  std::set<std::string> keys;
  for (const auto& [key, value] : baseline) keys.insert(key);
  for (const auto& [key, value] : treatment) keys.insert(key);
  for (const std::string& key : keys) {
    const std::string before = ValueOf(baseline, key);
    const std::string after = ValueOf(treatment, key);
    if (before == after || StartsWithAny(key, kTreatment)) continue;
    const bool one_sided = before.empty() || after.empty();
    if (one_sided && !StartsWithAny(key, kDecisive)) continue;
    differences.insert({key, {before, after}});
  }
}

}  // namespace

Environment CommonEnvironment(const std::vector<MergedCell>& cells) {
  if (cells.empty()) return {};
  Environment common = EnvironmentOf(cells.front());
  for (const MergedCell& cell : cells) {
    std::erase_if(common, [&cell](const auto& entry) {
      return ValueOf(EnvironmentOf(cell), entry.first) != entry.second;
    });
  }
  return common;
}

std::vector<Confounder> Confounders(const std::vector<MergedCell>& baseline,
                                    const std::vector<MergedCell>& treatment) {
  std::set<std::pair<std::string, std::pair<std::string, std::string>>> differences;
  for (const MergedCell& before : baseline) {
    for (const MergedCell& after : treatment) {
      if (before.facts.scenario != after.facts.scenario ||
          before.facts.concurrency != after.facts.concurrency) {
        continue;
      }
      Compare(EnvironmentOf(before), EnvironmentOf(after), differences);
    }
  }
  std::vector<Confounder> confounders;
  confounders.reserve(differences.size());
  for (const auto& [key, values] : differences) {
    confounders.push_back({key, values.first, values.second});
  }
  return confounders;
}

}  // namespace fulgur::bench

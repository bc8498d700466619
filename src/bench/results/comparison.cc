#include "bench/results/comparison.h"

#include <algorithm>

namespace fulgur::bench {
namespace {

template <typename T, typename Predicate>
const T* FindIf(const std::vector<T>& items, Predicate predicate) {
  const auto it = std::find_if(items.begin(), items.end(), predicate);
  return it == items.end() ? nullptr : &*it;
}

}  // namespace

const SystemFacts* Comparison::FindSystem(std::string_view id) const {
  return FindIf(systems, [id](const SystemFacts& system) { return system.id == id; });
}

const CellFacts* Comparison::FindCell(std::string_view system, std::string_view scenario,
                                      int64_t concurrency) const {
  return FindIf(cells, [&](const CellFacts& cell) {
    return cell.system == system && cell.scenario == scenario && cell.concurrency == concurrency;
  });
}

const Contrast* Comparison::FindContrast(std::string_view scenario, int64_t concurrency,
                                         std::string_view tag, std::string_view statistic) const {
  return FindIf(contrasts, [&](const Contrast& contrast) {
    return contrast.scenario == scenario && contrast.concurrency == concurrency &&
           contrast.tag == tag && contrast.statistic == statistic;
  });
}

std::optional<double> Statistic(const CellFacts* cell, std::string_view tag,
                                std::string_view name) {
  if (cell == nullptr) return std::nullopt;
  const auto it = cell->metrics.find(std::string(tag));
  return it == cell->metrics.end() ? std::nullopt : Statistic(it->second, name);
}

std::string ConcurrencyName(int64_t concurrency) {
  return concurrency == kUnlimited ? "C∞" : "C" + std::to_string(concurrency);
}

std::string VerdictName(Verdict verdict) {
  switch (verdict) {
    case Verdict::kImproved:
      return "improved";
    case Verdict::kNeutral:
      return "neutral";
    case Verdict::kRegression:
      return "REGRESSION";
    case Verdict::kNoise:
      return "noise?";
    case Verdict::kNotAvailable:
      return "n/a";
  }
  return "";
}

}  // namespace fulgur::bench

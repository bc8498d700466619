#include "bench/results/statistic.h"

#include "bench/results/strings.h"

namespace fulgur::bench {
namespace {

std::optional<int> PercentileOf(std::string_view name) {
  if (!name.starts_with('p')) return std::nullopt;
  const auto q = ParseInteger(name.substr(1));
  if (!q || *q < 1 || *q > 99) return std::nullopt;
  return static_cast<int>(*q);
}

}  // namespace

std::optional<double> Statistic(const MetricBlock& block, std::string_view name) {
  if (name == "avg") return block.avg;
  if (name == "min") return block.min;
  if (name == "max") return block.max;
  if (name == "std") return block.std;
  if (name == "sum") return block.sum;
  if (name == "count" && block.count) return static_cast<double>(*block.count);
  const auto q = PercentileOf(name);
  const auto it = q ? block.percentiles.find(*q) : block.percentiles.end();
  return it == block.percentiles.end() ? std::nullopt : std::optional(it->second);
}

bool SetStatistic(std::string_view name, double value, MetricBlock& block) {
  if (name == "avg")
    block.avg = value;
  else if (name == "min")
    block.min = value;
  else if (name == "max")
    block.max = value;
  else if (name == "std")
    block.std = value;
  else if (name == "sum")
    block.sum = value;
  else if (name == "count" && value >= 0 && value < 1e15)
    block.count = static_cast<int64_t>(value);
  else if (const auto q = PercentileOf(name))
    block.percentiles[*q] = value;
  else
    return false;
  return true;
}

}  // namespace fulgur::bench

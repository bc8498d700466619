// Statistics of a block by name: "avg", "min", "max", "std", "count", "sum", "p1" ... "p99".
#pragma once

#include <optional>
#include <string_view>

#include "bench/stats/metric.h"

namespace fulgur::bench {

std::optional<double> Statistic(const MetricBlock& block, std::string_view name);

// False if there is no statistic of that name.
bool SetStatistic(std::string_view name, double value, MetricBlock& block);

}  // namespace fulgur::bench

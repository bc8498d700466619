// An op table that measures how long the first worker's thread spends in each op.
#pragma once

#include <string_view>
#include <utility>
#include <vector>

#include "kernels/op_table.h"

namespace fulgur::bench_kernels {

// Wraps a table. One at a time: the times are kept in one place.
const kernels::OpTable& TimedOps(const kernels::OpTable& ops);

void ResetTimes();

// Seconds of each op that ran since the last reset.
std::vector<std::pair<std::string_view, double>> OpSeconds();

}  // namespace fulgur::bench_kernels

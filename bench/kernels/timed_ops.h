// An op table that measures how long the first worker's thread spends in each op.
#pragma once

#include <string_view>

#include "kernels/op_table.h"

namespace fulgur::bench_kernels {

// Wraps a table. One at a time: the times are kept in one place.
const kernels::OpTable& TimedOps(const kernels::OpTable& ops);

void ResetProfile();

// Prints milliseconds and share of each op since the last reset, and resets.
void PrintProfile(std::string_view title);

}  // namespace fulgur::bench_kernels

// Questions about a fact that is hidden in long text: how much of a context a server really reads.
#pragma once

#include <cstdint>
#include <vector>

#include "bench/eval/eval_item.h"

namespace fulgur::bench {

// Adds two questions for each length (in words of filler) and depth. Depths are spread evenly from
// the beginning (0 %) to the end (100 %). The text is made up, and the same in every run.
void MakeNeedleItems(const NeedleShape& shape, EvalData& data);

}  // namespace fulgur::bench

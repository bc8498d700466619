// The prompt and output lengths that aiperf draws from a sequence distribution for a seed.
//
// The same numbers as releases 0.10 to 0.13: a generator of its own is seeded with the first eight
// bytes of SHA-256("<seed>:models.sequence.distribution"); Python's random() picks the entry,
// Python's gauss() draws each length, redrawn while negative, rounded up.
#pragma once

#include <cstdint>
#include <vector>

#include "bench/results/run_plan.h"

namespace fulgur::bench {

struct LengthDraw {
  int64_t input = 0;
  int64_t output = 0;
};

// The first `count` draws. Distributions whose weights do not add up to something positive, or
// lengths beyond 2^53, yield none.
std::vector<LengthDraw> AiperfLengthDraws(const std::vector<LengthPair>& distribution, int64_t seed,
                                          int64_t count);

}  // namespace fulgur::bench

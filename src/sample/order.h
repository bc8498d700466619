// Selection in one order: value descending, index ascending. No full sorts.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace fulgur::sample {

// True if token a comes before token b.
inline bool Before(std::span<const float> values, int32_t a, int32_t b) {
  const float x = values[static_cast<size_t>(a)];
  const float y = values[static_cast<size_t>(b)];
  return x > y || (x == y && a < b);
}

// The first index in the order; values must not be empty nor hold NaN.
int32_t ArgMax(std::span<const float> values);

// The first `count` indices in the order, best first, into `out`; `out` is reused, not reallocated.
void TopIndices(std::span<const float> values, int64_t count, std::vector<int32_t>& out);

// By how much the largest value exceeds the second largest; at least two values.
float TopGap(std::span<const float> values);

// How many indices come before `index`, plus one.
int32_t RankOf(std::span<const float> values, int32_t index);

// True if any value is NaN or infinite.
bool HasNonFinite(std::span<const float> values);

}  // namespace fulgur::sample

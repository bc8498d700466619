#include "sample/order.h"

#include <algorithm>
#include <array>
#include <bit>

#include "base/check.h"

namespace fulgur::sample {
namespace {

// Rows are walked in pieces of a fixed size, so that the compiler may use vector registers without
// reordering floats.
constexpr size_t kPiece = 16;

float Max(std::span<const float> values) {
  std::array<float, kPiece> lanes;
  lanes.fill(values[0]);
  size_t i = 0;
  for (; i + kPiece <= values.size(); i += kPiece) {
    for (size_t lane = 0; lane < kPiece; ++lane) {
      const float value = values[i + lane];
      lanes[lane] = value > lanes[lane] ? value : lanes[lane];
    }
  }
  float max = *std::max_element(lanes.begin(), lanes.end());
  for (; i < values.size(); ++i) max = std::max(max, values[i]);
  return max;
}

// All ones if the value is NaN or infinite.
uint32_t NonFiniteMask(float value) {
  constexpr uint32_t kExponent = 0x7F800000U;
  return (std::bit_cast<uint32_t>(value) & kExponent) == kExponent ? ~0U : 0U;
}

}  // namespace

int32_t ArgMax(std::span<const float> values) {
  CHECK(!values.empty());
  const auto place = std::find(values.begin(), values.end(), Max(values));
  return static_cast<int32_t>(place - values.begin());
}

void TopIndices(std::span<const float> values, int64_t count, std::vector<int32_t>& out) {
  out.clear();
  const size_t wanted = std::min(static_cast<size_t>(count), values.size());
  if (wanted == 0) return;
  // A heap of the best so far with the last of them on top: most values lose against it at once.
  const auto before = [&](int32_t a, int32_t b) { return Before(values, a, b); };
  for (size_t i = 0; i < wanted; ++i) out.push_back(static_cast<int32_t>(i));
  std::make_heap(out.begin(), out.end(), before);
  float worst = values[static_cast<size_t>(out.front())];
  for (size_t i = wanted; i < values.size(); ++i) {
    if (values[i] <= worst) continue;  // an equal one with a higher index loses, too
    std::pop_heap(out.begin(), out.end(), before);
    out.back() = static_cast<int32_t>(i);
    std::push_heap(out.begin(), out.end(), before);
    worst = values[static_cast<size_t>(out.front())];
  }
  std::sort_heap(out.begin(), out.end(), before);
}

float TopGap(std::span<const float> values) {
  const float first = Max(values);
  const auto place = std::find(values.begin(), values.end(), first);
  const auto before = std::span(values.begin(), place);
  const auto after = std::span(place + 1, values.end());
  if (before.empty()) return first - Max(after);
  if (after.empty()) return first - Max(before);
  return first - std::max(Max(before), Max(after));
}

int32_t RankOf(std::span<const float> values, int32_t index) {
  const auto place = static_cast<size_t>(index);
  const float value = values[place];
  int32_t rank = 1;
  for (size_t i = 0; i < place; ++i) rank += values[i] >= value ? 1 : 0;
  for (size_t i = place + 1; i < values.size(); ++i) rank += values[i] > value ? 1 : 0;
  return rank;
}

bool HasNonFinite(std::span<const float> values) {
  std::array<uint32_t, kPiece> lanes = {};
  size_t i = 0;
  for (; i + kPiece <= values.size(); i += kPiece) {
    for (size_t lane = 0; lane < kPiece; ++lane) lanes[lane] |= NonFiniteMask(values[i + lane]);
  }
  uint32_t found = 0;
  for (const uint32_t lane : lanes) found |= lane;
  for (; i < values.size(); ++i) found |= NonFiniteMask(values[i]);
  return found != 0;
}

}  // namespace fulgur::sample

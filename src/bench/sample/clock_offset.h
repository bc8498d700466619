// How far the clock of another host is from ours, measured by asking it for the time.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/statusor.h"

namespace fulgur::bench {

struct ClockOffset {
  int64_t offset_ns = 0;       // the other clock minus ours
  int64_t uncertainty_ns = 0;  // half the shortest round trip
  int num_answers = 0;
};

// Asks `num_questions` times and keeps the answer with the shortest round trip, which bounds the
// error best (Cristian's algorithm). `ask` returns the other host's wall clock in nanoseconds;
// `now` our own. The error of the last question if none was answered.
absl::StatusOr<ClockOffset> MeasureClockOffset(const std::function<absl::StatusOr<int64_t>()>& ask,
                                               const std::function<int64_t()>& now,
                                               int num_questions = 20);

// A fetched log with the offset noted in its first line, so that readers can align it. `text` may
// be of either format.
std::string WithClockOffset(const std::string& text, const ClockOffset& offset);

}  // namespace fulgur::bench

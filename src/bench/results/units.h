// Units of metrics: a file's unit is authoritative, and converted to the one that the tag has here.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "bench/stats/metric.h"

namespace fulgur::bench {

// Milliseconds in a unit of time ("ns", "us", "ms", "s", "sec" ...); an error if it is none.
absl::StatusOr<double> MillisecondsIn(std::string_view unit);

// Converts times to milliseconds (benchmark_duration: seconds). An error if the tag's meaning and
// the unit do not go together, such as a latency in tokens, or if the unit of a tag with a known
// meaning is unknown.
absl::Status ConvertUnit(std::string_view tag, MetricBlock& block);

// The unit that aiperf writes for a tag, for sources that name none.
std::string_view UsualUnit(std::string_view tag);

}  // namespace fulgur::bench

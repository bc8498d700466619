// The metrics of one request, under aiperf's tags.
//
// "Output frames" carry content, reasoning or tool calls. The first of them is the first token, the
// last one ends the request: neither a role-only first message nor the usage message counts.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "bench/stats/record.h"

namespace fulgur::bench {

struct RequestMetrics {
  std::map<std::string, double> values;        // tag -> value, in the unit of UnitOf(tag)
  std::vector<double> inter_chunk_latency_ms;  // gaps between output frames

  // The value of a tag, or `absent`.
  double Get(std::string_view tag, double absent) const;
  bool Has(std::string_view tag) const { return values.contains(std::string(tag)); }
};

// The unit that aiperf writes beside a tag, such as "ms" for "time_to_first_token".
std::string_view UnitOf(std::string_view tag);

// What can be said of a request that ended well. A metric whose inputs are missing is absent.
RequestMetrics ComputeRequestMetrics(const RequestRecord& record);

// What can be said of any request, failed ones too: the waiting of the load generator.
RequestMetrics ComputeScheduleMetrics(const RequestRecord& record);

}  // namespace fulgur::bench

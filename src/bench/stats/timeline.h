// How many requests and tokens were under way at each moment of a run: aiperf's sweep-line metrics,
// weighted by time.
#pragma once

#include <cstdint>
#include <vector>

#include "bench/stats/metric.h"
#include "bench/stats/record.h"

namespace fulgur::bench {

// When one request was where. Times of CLOCK_MONOTONIC.
struct RequestSpan {
  int64_t start_ns = 0;
  int64_t first_ns = 0;  // first output; 0: there was none
  int64_t last_ns = 0;   // last output
  int64_t end_ns = 0;    // last byte
  double input_tokens = 0.0;
  double output_tokens = 0.0;  // 0: not known, or the request failed
};

RequestSpan ToSpan(const RequestRecord& record);

// effective_concurrency, effective_prefill_concurrency, effective_decode_concurrency (requests),
// effective_decode_throughput, effective_prefill_throughput (tokens/sec), over [start, end]. The
// tokens of an answer are spread evenly between its first and its last.
//
// And fulgur_steady_output_token_throughput with fulgur_steady_duration: the same rate between the
// first and the last moment with at least 95 % of the highest number of requests in flight, without
// ramp and drain. Absent if that is shorter than three mean latencies.
void AddTimelineMetrics(const std::vector<RequestSpan>& spans, int64_t start_ns, int64_t end_ns,
                        MetricMap& metrics);

}  // namespace fulgur::bench

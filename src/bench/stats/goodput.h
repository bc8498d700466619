// Service level objectives: which requests count as good.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "bench/stats/request_metrics.h"

namespace fulgur::bench {

struct Objective {
  std::string tag;
  double limit = 0.0;
  bool larger_is_better = false;  // throughputs
};

// Parses "time_to_first_token:500 inter_token_latency:50", aiperf's form, or vLLM's short names
// ttft, tpot and e2el.
absl::StatusOr<std::vector<Objective>> ParseGoodput(const std::string& text);

// A request is good if it meets every objective; one that lacks a metric is not.
bool MeetsAll(const RequestMetrics& metrics, const std::vector<Objective>& objectives);

}  // namespace fulgur::bench

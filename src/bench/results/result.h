// One result as read from disk or as just measured: the cell, what was asked for, and the requests.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "bench/results/run_plan.h"
#include "bench/results/utilisation.h"
#include "bench/stats/cell.h"
#include "bench/stats/record.h"
#include "bench/stats/request_metrics.h"

namespace fulgur::bench {

// One request as result files keep it: a line of profile_export.jsonl. Times are wall clock.
struct RequestLine {
  int64_t session = 0;
  int32_t turn = 0;
  bool warmup = false;
  bool cancelled = false;
  std::string request_id;
  std::string conversation_id;
  std::optional<int64_t> scheduled_ns;
  int64_t start_ns = 0;
  std::optional<int64_t> ack_ns;
  int64_t end_ns = 0;
  RequestMetrics metrics;
  std::optional<RequestError> error;

  bool valid() const { return !error.has_value() && !cancelled && !warmup; }
};

struct Result {
  Cell cell;
  RunPlan plan;
  std::vector<RequestLine> requests;  // empty if the file keeps no requests
  std::optional<double> window_s;     // the phase window: end_time - start_time
  // Requests whose body asks for fewer tokens than its own min_tokens; known from inputs.json only.
  std::optional<int64_t> impossible_requests;
  std::optional<UtilisationSummary> utilisation;  // of devices in the measured phase, from the file
  std::vector<std::string> problems;              // what had to be skipped, one sentence each
};

// Why a request failed; a cancelled one failed with code 499, as aiperf has it.
std::optional<RequestError> FailureOf(const RequestRecord& record);

// What profile_export.jsonl says of a record.
RequestLine ToRequestLine(const RequestRecord& record);

}  // namespace fulgur::bench

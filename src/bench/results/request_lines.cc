#include "bench/results/request_lines.h"

#include <cmath>

#include "nlohmann/json.hpp"

namespace fulgur::bench {
namespace {

using OrderedJson = nlohmann::ordered_json;

OrderedJson MetadataJson(const RequestLine& line, int phase_index) {
  const char* phase = line.warmup ? "warmup" : "profiling";
  OrderedJson json = {{"session_num", line.session},
                      {"x_request_id", line.request_id},
                      {"x_correlation_id", line.conversation_id},
                      {"conversation_id", line.conversation_id},
                      {"turn_index", line.turn}};
  if (line.scheduled_ns) json["credit_issued_ns"] = *line.scheduled_ns;
  json["request_start_ns"] = line.start_ns;
  if (line.ack_ns) json["request_ack_ns"] = *line.ack_ns;
  json["request_end_ns"] = line.end_ns;
  json["worker_id"] = "fulgur";
  json["record_processor_id"] = "fulgur";
  json["benchmark_phase"] = phase;
  json["phase_index"] = phase_index;
  if (!line.warmup) json["profiling_index"] = 0;
  json["phase_name"] = phase;
  json["phase_kind"] = phase;
  json["was_cancelled"] = line.cancelled;
  if (line.cancelled) json["cancellation_time_ns"] = line.end_ns;
  return json;
}

// Counts of tokens are integers in aiperf's records.
OrderedJson ValueJson(double value, std::string_view unit) {
  if (unit == "tokens" && value == std::floor(value) && std::fabs(value) < 1e15) {
    return static_cast<int64_t>(value);
  }
  return value;
}

OrderedJson MetricsJson(const RequestLine& line) {
  OrderedJson metrics = OrderedJson::object();
  for (const auto& [tag, value] : line.metrics.values) {
    if (!std::isfinite(value)) continue;
    const std::string_view unit = UnitOf(tag);
    metrics[tag] = {{"value", ValueJson(value, unit)}, {"unit", unit}};
  }
  if (!line.metrics.inter_chunk_latency_ms.empty()) {
    metrics["inter_chunk_latency"] = {{"value", line.metrics.inter_chunk_latency_ms},
                                      {"unit", "ms"}};
  }
  return metrics;
}

OrderedJson ErrorJson(const RequestError& error) {
  OrderedJson json = OrderedJson::object();
  if (error.code) json["code"] = *error.code;
  json["type"] = error.type;
  json["message"] = error.message;
  return json;
}

}  // namespace

std::optional<RequestError> FailureOf(const RequestRecord& record) {
  if (record.error || !record.cancelled) return record.error;
  return RequestError{499, "RequestCancellationError", "The request was cancelled"};
}

RequestLine ToRequestLine(const RequestRecord& record) {
  const auto wall = [&record](int64_t monotonic_ns) {
    return record.wall_start_ns + (monotonic_ns - record.start_ns);
  };
  RequestLine line;
  line.session = record.session;
  line.turn = record.turn;
  line.warmup = record.warmup;
  line.cancelled = record.cancelled;
  line.request_id = record.request_id;
  line.conversation_id = record.conversation_id;
  line.scheduled_ns = wall(record.scheduled_ns);
  line.start_ns = record.wall_start_ns;
  if (record.ack_ns != 0) line.ack_ns = wall(record.ack_ns);
  line.end_ns = wall(record.end_ns);
  line.error = FailureOf(record);
  if (line.error) {
    if (record.input_tokens) {
      line.metrics.values["error_isl"] = static_cast<double>(*record.input_tokens);
    }
  } else {
    line.metrics = ComputeRequestMetrics(record);
  }
  return line;
}

std::string RequestLineToJson(const RequestLine& line, int phase_index) {
  OrderedJson json = {{"metadata", MetadataJson(line, phase_index)},
                      {"metrics", MetricsJson(line)}};
  if (line.error) json["error"] = ErrorJson(*line.error);
  return json.dump(-1, ' ', false, OrderedJson::error_handler_t::replace);
}

}  // namespace fulgur::bench

#include "bench/stats/request_metrics.h"

#include <algorithm>
#include <cmath>
#include <optional>

namespace fulgur::bench {
namespace {

constexpr double kNsPerMs = 1e6;

double Ms(int64_t ns) { return static_cast<double>(ns) / kNsPerMs; }

std::vector<const Frame*> OutputFrames(const RequestRecord& record) {
  std::vector<const Frame*> frames;
  for (const Frame& frame : record.frames) {
    if (frame.is_output()) frames.push_back(&frame);
  }
  return frames;
}

void SetTimes(const RequestRecord& record, const std::vector<const Frame*>& frames,
              RequestMetrics& metrics) {
  auto& values = metrics.values;
  const double first = Ms(frames.front()->arrival_ns - record.start_ns);
  const double last = Ms(frames.back()->arrival_ns - record.start_ns);
  values["time_to_first_token"] = first;
  values["request_latency"] = last;
  values["decode_duration"] = last - first;
  if (frames.size() > 1) {
    values["time_to_second_token"] = Ms(frames[1]->arrival_ns - frames[0]->arrival_ns);
  }
  for (size_t i = 1; i < frames.size(); ++i) {
    metrics.inter_chunk_latency_ms.push_back(Ms(frames[i]->arrival_ns - frames[i - 1]->arrival_ns));
  }
  const auto visible = std::find_if(frames.begin(), frames.end(), [](const Frame* frame) {
    return frame->kind != FrameKind::kReasoning;
  });
  if (visible != frames.end()) {
    values["time_to_first_output_token"] = Ms((*visible)->arrival_ns - record.start_ns);
  }
}

void SetLengths(const RequestRecord& record, RequestMetrics& metrics) {
  auto& values = metrics.values;
  const auto set = [&values](const char* tag, const std::optional<int64_t>& count) {
    if (count) values[tag] = static_cast<double>(*count);
  };
  set("input_sequence_length", record.input_tokens);
  set("output_sequence_length", record.output_tokens);
  if (record.output_tokens) {
    set("output_token_count", *record.output_tokens - record.reasoning_tokens.value_or(0));
  }
  if (record.reasoning_tokens.value_or(0) > 0)
    set("reasoning_token_count", record.reasoning_tokens);
  if (record.output_tokens && record.requested_output_tokens.value_or(0) > 0) {
    const auto asked = static_cast<double>(*record.requested_output_tokens);
    values["osl_mismatch_diff_pct"] =
        (static_cast<double>(*record.output_tokens) - asked) / asked * 100.0;
  }
}

void SetRates(const RequestRecord& record, const std::vector<const Frame*>& frames,
              RequestMetrics& metrics) {
  auto& values = metrics.values;
  const double first = values["time_to_first_token"];
  const double decode = values["decode_duration"];
  if (record.input_tokens && first > 0) {
    values["prefill_throughput_per_user"] =
        static_cast<double>(*record.input_tokens) / first * 1000.0;
  }
  if (!record.output_tokens) return;
  const auto tokens = static_cast<double>(*record.output_tokens);
  if (values["request_latency"] > 0) {
    values["e2e_output_token_throughput"] = tokens / values["request_latency"] * 1000.0;
  }
  values["fulgur_tokens_per_chunk"] = tokens / static_cast<double>(frames.size());
  if (tokens >= 2) {
    values["inter_token_latency"] = decode / (tokens - 1);
    if (decode > 0) values["output_token_throughput_per_user"] = 1000.0 * (tokens - 1) / decode;
  }
  if (!frames.front()->tokens) return;
  const auto first_chunk = static_cast<double>(*frames.front()->tokens);
  values["fulgur_first_chunk_tokens"] = first_chunk;
  if (tokens > first_chunk) {
    values["fulgur_itl_after_first_chunk"] = decode / (tokens - first_chunk);
  }
}

double DifferencePercent(int64_t server, int64_t client) {
  return std::fabs(static_cast<double>(server - client)) / static_cast<double>(client) * 100.0;
}

// The client's own count differs from the server's where it was made by another tokenizer, or
// leaves the template out.
void SetUsage(const RequestRecord& record, RequestMetrics& metrics) {
  auto& values = metrics.values;
  const Usage& usage = record.usage;
  const auto set = [&values](const char* tag, const std::optional<int64_t>& count) {
    if (count) values[tag] = static_cast<double>(*count);
  };
  set("usage_prompt_tokens", usage.prompt_tokens);
  set("usage_completion_tokens", usage.completion_tokens);
  set("usage_prompt_cache_read_tokens", usage.cached_tokens);
  if (usage.reasoning_tokens.value_or(0) > 0) set("usage_reasoning_tokens", usage.reasoning_tokens);
  if (usage.prompt_tokens && usage.completion_tokens) {
    set("usage_total_tokens", *usage.prompt_tokens + *usage.completion_tokens);
  }
  if (usage.prompt_tokens && record.input_tokens.value_or(0) > 0) {
    values["usage_prompt_tokens_diff_pct"] =
        DifferencePercent(*usage.prompt_tokens, *record.input_tokens);
  }
  if (usage.completion_tokens && record.output_tokens.value_or(0) > 0) {
    values["usage_completion_tokens_diff_pct"] =
        DifferencePercent(*usage.completion_tokens, *record.output_tokens);
  }
}

}  // namespace

double RequestMetrics::Get(std::string_view tag, double absent) const {
  const auto it = values.find(std::string(tag));
  return it == values.end() ? absent : it->second;
}

std::string_view UnitOf(std::string_view tag) {
  if (tag.ends_with("_diff_pct")) return "%";
  if (tag.ends_with("_throughput_per_user") || tag == "e2e_output_token_throughput") {
    return "tokens/sec/user";
  }
  if (tag.ends_with("_tokens") || tag.ends_with("_sequence_length") ||
      tag.ends_with("_token_count") || tag.ends_with("_isl") || tag.ends_with("_per_chunk")) {
    return "tokens";
  }
  if (tag == "fulgur_output_repetition") return "ratio";
  return "ms";
}

RequestMetrics ComputeRequestMetrics(const RequestRecord& record) {
  RequestMetrics metrics;
  const std::vector<const Frame*> frames = OutputFrames(record);
  SetLengths(record, metrics);
  SetUsage(record, metrics);
  if (record.output_repetition) {
    metrics.values["fulgur_output_repetition"] = *record.output_repetition;
  }
  if (frames.empty()) return metrics;
  SetTimes(record, frames, metrics);
  SetRates(record, frames, metrics);
  metrics.values["fulgur_effective_ttft"] = Ms(frames.front()->arrival_ns - record.scheduled_ns);
  if (!metrics.inter_chunk_latency_ms.empty()) {
    metrics.values["fulgur_max_stall"] = *std::max_element(metrics.inter_chunk_latency_ms.begin(),
                                                           metrics.inter_chunk_latency_ms.end());
  }
  return metrics;
}

RequestMetrics ComputeScheduleMetrics(const RequestRecord& record) {
  RequestMetrics metrics;
  metrics.values["credit_to_start_latency"] = Ms(record.start_ns - record.scheduled_ns);
  metrics.values["effective_latency"] = Ms(record.end_ns - record.scheduled_ns);
  return metrics;
}

}  // namespace fulgur::bench

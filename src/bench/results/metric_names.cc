#include "bench/results/metric_names.h"

#include <algorithm>
#include <array>
#include <utility>

#include "absl/strings/ascii.h"
#include "fmt/format.h"

namespace fulgur::bench {
namespace {

// Those that are not just the tag with capitals.
constexpr std::array<std::pair<std::string_view, std::string_view>, 36> kNames = {{
    {"adj_decode_duration", "Decode Duration (error-adjusted)"},
    {"adj_inter_token_latency", "Inter Token Latency (error-adjusted)"},
    {"adj_request_latency", "Request Latency (error-adjusted)"},
    {"adj_time_to_first_token", "Time to First Token (error-adjusted)"},
    {"completed_request_count", "Completed Requests (Success + Error)"},
    {"credit_to_start_latency", "Credit-to-Start Latency"},
    {"e2e_output_token_throughput", "E2E Output Token Throughput"},
    {"effective_latency", "Effective Latency (CO-aware)"},
    {"error_isl", "Error Input Sequence Length"},
    {"fulgur_effective_ttft", "Effective TTFT"},
    {"fulgur_first_chunk_tokens", "First Chunk Tokens"},
    {"fulgur_itl_after_first_chunk", "ITL After First Chunk"},
    {"fulgur_max_stall", "Max Stall"},
    {"fulgur_mean_concurrency", "Mean Concurrency"},
    {"fulgur_output_token_throughput_over_duration", "Output Token Throughput Over Duration"},
    {"fulgur_per_user_harmonic", "Output Token Throughput Per User (harmonic)"},
    {"fulgur_per_user_token_weighted", "Output Token Throughput Per User (token-weighted)"},
    {"fulgur_tokens_per_chunk", "Tokens Per Chunk"},
    {"good_request_fraction", "GoodRequestFraction"},
    {"http_req_dns_lookup", "HTTP DNS Lookup"},
    {"http_req_duration", "HTTP Duration (excl. conn)"},
    {"http_req_total", "HTTP Total Time"},
    {"http_req_waiting", "HTTP Waiting (TTFB)"},
    {"osl_mismatch_count", "OSL Mismatch Count"},
    {"osl_mismatch_diff_pct", "OSL Mismatch Diff %"},
    {"time_to_first_output_token", "Time to First Output Token"},
    {"time_to_first_token", "Time to First Token"},
    {"time_to_second_token", "Time to Second Token"},
    {"total_error_isl", "Total Error Input Sequence Length"},
    {"total_isl", "Total Input Sequence Length"},
    {"total_osl", "Total Output Sequence Length"},
    {"usage_completion_tokens_diff_pct", "Usage Completion Diff %"},
    {"usage_prompt_tokens_diff_pct", "Usage Prompt Diff %"},
    {"usage_prompt_cache_read_tokens", "Usage Prompt Cache Read Tokens"},
    {"usage_prompt_cache_miss_tokens", "Usage Prompt Cache Miss Tokens"},
    {"usage_reasoning_tokens_diff_pct", "Usage Reasoning Diff %"},
}};

}  // namespace

std::string MetricName(std::string_view tag) {
  for (const auto& [known, name] : kNames) {
    if (tag == known) return std::string(name);
  }
  constexpr std::string_view kHttp = "http_req_";
  if (tag.starts_with(kHttp)) return "HTTP " + MetricName(tag.substr(kHttp.size()));
  std::string name(tag);
  bool word_starts = true;
  for (char& letter : name) {
    if (letter == '_') letter = ' ';
    if (word_starts) letter = absl::ascii_toupper(static_cast<unsigned char>(letter));
    word_starts = letter == ' ';
  }
  return name;
}

std::string MetricNameWithUnit(std::string_view tag, std::string_view unit) {
  if (unit.empty() || unit == "count" || unit == "requests") return MetricName(tag);
  return fmt::format("{} ({})", MetricName(tag), unit);
}

}  // namespace fulgur::bench

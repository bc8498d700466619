#include "server/metrics.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <vector>

#include "absl/time/clock.h"
#include "server/process_metrics.h"
#include "server/speculation_report.h"

namespace fulgur::server {
namespace {

const std::vector<double> kFirstTokenBuckets = {0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1,
                                                0.25,  0.5,   0.75, 1,    2.5,  5,    7.5,  10,
                                                20,    40,    80,   160,  640,  2560};
const std::vector<double> kTokenBuckets = {0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5,
                                           0.75, 1,     2.5,  5,     7.5, 10,   20,  40,  80};
const std::vector<double> kRequestBuckets = {0.3, 0.5, 0.8, 1,  1.5, 2,   2.5, 5,   10,   15,  20,
                                             30,  40,  50,  60, 120, 240, 480, 960, 1920, 7680};
const std::vector<double> kHttpBuckets = {0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5,
                                          0.75, 1,     1.5,  2,     2.5, 3,    3.5,
                                          4,    4.5,   5,    7.5,   10,  30,   60};

constexpr std::array<std::string_view, 5> kReasonNames = {"stop", "length", "abort", "error",
                                                          "repetition"};

double Ratio(int64_t part, int64_t whole) {
  return whole > 0 ? static_cast<double>(part) / static_cast<double>(whole) : 0.0;
}

std::string Grouped(int status) { return fmt::format("{}xx", status / 100); }

}  // namespace

Metrics::Metrics(std::string model_name, int64_t max_model_len,
                 std::map<std::string, std::string> cache_config)
    : model_label_(MetricLabels({{"model_name", model_name}})),
      labels_(JoinLabels(MetricLabels({{"engine", "0"}}), model_label_)),
      cache_config_(std::move(cache_config)),
      start_seconds_(absl::ToDoubleSeconds(absl::Now() - absl::UnixEpoch())),
      time_to_first_token_(kFirstTokenBuckets),
      inter_token_latency_(kTokenBuckets),
      time_per_output_token_(kTokenBuckets),
      end_to_end_(kRequestBuckets),
      queue_(kRequestBuckets),
      prefill_(kRequestBuckets),
      decode_(kRequestBuckets),
      inference_(kRequestBuckets),
      computed_prompt_tokens_(OneTwoFiveBuckets(max_model_len)),
      preemptions_({1, 2, 3, 4, 5, 10, 20}),
      prompt_tokens_(OneTwoFiveBuckets(max_model_len)),
      generation_tokens_(OneTwoFiveBuckets(max_model_len)),
      max_tokens_(OneTwoFiveBuckets(max_model_len)),
      params_n_({1, 2, 5, 10, 20}),
      http_duration_(kHttpBuckets) {}

void Metrics::OnFinish(const FinishedChoice& choice) {
  ++finished_[static_cast<size_t>(choice.reason)];
  end_to_end_.Observe(choice.end_to_end);
  if (choice.per_output_token >= 0) time_per_output_token_.Observe(choice.per_output_token);
  prompt_tokens_.Observe(static_cast<double>(choice.prompt_tokens));
  generation_tokens_.Observe(static_cast<double>(choice.output_tokens));
  max_tokens_.Observe(static_cast<double>(choice.max_tokens));
}

void Metrics::OnRecord(const engine::RequestRecord& record) {
  auto observe = [](Histogram& histogram, const auto& from, const auto& to) {
    if (from && to) histogram.Observe(std::chrono::duration<double>(*to - *from).count());
  };
  observe(queue_, std::optional(record.submitted), record.scheduled);
  observe(prefill_, record.scheduled, record.first_token);
  observe(decode_, record.first_token, record.last_token);
  observe(inference_, record.scheduled, record.last_token);
  computed_prompt_tokens_.Observe(static_cast<double>(record.num_computed_prompt_tokens));
  preemptions_.Observe(static_cast<double>(record.num_preemptions));
}

void Metrics::OnHttp(const HttpExchange& exchange) {
  std::string handler(exchange.handler);
  std::string method(exchange.method);
  ++http_requests_[{handler, method, Grouped(exchange.status)}];
  http_duration_.Observe(exchange.seconds);
  HttpRoute& route = http_routes_[{handler, method}];
  route.duration.Observe(exchange.seconds);
  ++route.count;
  route.request_bytes += exchange.request_bytes;
  route.response_bytes += exchange.response_bytes;
}

std::string Metrics::Expose(const engine::EngineStats& stats) const {
  Exposition out(start_seconds_);
  WriteEngine(stats, &out);
  WriteRequests(&out);
  WriteHistograms(&out);
  WriteSteps(stats, &out);
  WriteSpeculation(stats.speculation, labels_, &out);
  WriteHttp(&out);
  WriteProcessMetrics(&out);
  return out.Take();
}

void Metrics::WriteEngine(const engine::EngineStats& stats, Exposition* out) const {
  auto gauge = [&](const char* name, const char* help, double value) {
    out->Gauge(name, help, labels_, value);
  };
  auto counter = [&](const char* name, const char* help, int64_t value) {
    out->Counter(name, help, labels_, static_cast<double>(value));
  };
  auto labelled = [&](std::string_view label, std::string_view value, double number) {
    out->Value(JoinLabels(labels_, MetricLabels({{label, value}})), number);
  };
  double usage = Ratio(stats.pages_used, stats.pages_total);
  gauge("vllm:num_requests_running", "Requests in the running batch.",
        static_cast<double>(stats.num_running));
  gauge("vllm:num_requests_waiting", "Requests waiting to be scheduled.",
        static_cast<double>(stats.num_waiting));
  out->Gauge("vllm:num_requests_waiting_by_reason", "Waiting requests by reason.");
  labelled("reason", "capacity", static_cast<double>(stats.num_waiting));
  labelled("reason", "deferred", 0);
  gauge("vllm:kv_cache_usage_perc", "Share of the KV cache in use, 0 to 1.", usage);
  gauge("vllm:gpu_cache_usage_perc", "Older name of kv_cache_usage_perc.", usage);
  out->Gauge("vllm:engine_sleep_state", "1 for the state the engine is in.");
  labelled("sleep_state", "awake", 1);
  labelled("sleep_state", "weights_offloaded", 0);
  labelled("sleep_state", "discard_all", 0);
  std::string cache_labels = MetricLabels({{"engine", "0"}});
  for (const auto& [name, value] : cache_config_) {
    cache_labels = JoinLabels(cache_labels, MetricLabels({{name, value}}));
  }
  out->Gauge("vllm:cache_config_info", "Settings of the KV cache, as labels.", cache_labels, 1);

  counter("vllm:prompt_tokens", "Prompt tokens processed.", stats.prompt_tokens);
  counter("vllm:generation_tokens", "Tokens generated.", stats.generation_tokens);
  out->Counter("vllm:prompt_tokens_by_source", "Prompt tokens by where their KV came from.");
  labelled(
      "source", "local_compute",
      static_cast<double>(std::max<int64_t>(0, stats.prompt_tokens - stats.prefix_hits_tokens)));
  labelled("source", "local_cache_hit", static_cast<double>(stats.prefix_hits_tokens));
  labelled("source", "external_kv_transfer", 0);
  counter("vllm:prompt_tokens_cached", "Prompt tokens found in a cache.", stats.prefix_hits_tokens);
  out->Counter("vllm:prompt_tokens_cached_by_source", "Cached prompt tokens by tier.");
  for (const char* tier : {"device", "host", "p2p", "disk", "external_unspecified"}) {
    bool device = std::string_view(tier) == "device";
    labelled("source", tier, device ? static_cast<double>(stats.prefix_hits_tokens) : 0);
  }
  counter("vllm:prefix_cache_queries", "Tokens looked up in the prefix cache.",
          stats.prefix_queries_tokens);
  counter("vllm:prefix_cache_hits", "Tokens found in the prefix cache.", stats.prefix_hits_tokens);
  for (const char* name : {"vllm:external_prefix_cache_queries", "vllm:external_prefix_cache_hits",
                           "vllm:mm_cache_queries", "vllm:mm_cache_hits"}) {
    counter(name, "Always 0: this server has no such cache.", 0);
  }
  counter("vllm:corrupted_requests", "Requests ended because the model gave no finite numbers.",
          stats.num_bad_logits);
  counter("vllm:num_preemptions", "Preemptions of running requests.", stats.num_preemptions);
}

void Metrics::WriteRequests(Exposition* out) const {
  out->Counter("vllm:request_success", "Finished answers by reason.");
  for (size_t i = 0; i < finished_.size(); ++i) {
    out->Value(JoinLabels(labels_, MetricLabels({{"finished_reason", kReasonNames[i]}})),
               static_cast<double>(finished_[i]));
  }
  out->Counter("vllm:admission_rejections", "Requests refused because the queue was full.");
  for (size_t i = 0; i < rejections_.size(); ++i) {
    std::string_view reason = i == 0 ? "max_num_queued_reqs" : "max_num_queued_tokens";
    out->Value(JoinLabels(model_label_, MetricLabels({{"reason", reason}})),
               static_cast<double>(rejections_[i]));
  }
  out->Counter("vllm:tool_call_parser_invocations", "Answers that the tool parser read.");
  for (size_t mode = 0; mode < 2; ++mode) {
    for (size_t outcome = 0; outcome < 2; ++outcome) {
      std::string labels = MetricLabels({{"mode", mode == 0 ? "streaming" : "non_streaming"},
                                         {"outcome", outcome == 0 ? "tool_call" : "no_tool_call"},
                                         {"request_type", "chat_completions"}});
      out->Value(JoinLabels(labels_, labels),
                 static_cast<double>(tool_parser_uses_[mode][outcome]));
    }
  }
}

void Metrics::WriteHistograms(Exposition* out) const {
  auto histogram = [&](const char* name, const char* help, const Histogram& values) {
    out->HistogramFamily(name, help);
    out->Values(labels_, values);
  };
  histogram("vllm:time_to_first_token_seconds", "From arrival to the first token.",
            time_to_first_token_);
  histogram("vllm:inter_token_latency_seconds", "Between steps that gave tokens.",
            inter_token_latency_);
  histogram("vllm:time_per_output_token_seconds", "Older name of inter_token_latency_seconds.",
            inter_token_latency_);
  histogram("vllm:request_time_per_output_token_seconds", "Mean time per token after the first.",
            time_per_output_token_);
  histogram("vllm:e2e_request_latency_seconds", "From arrival to the last token.", end_to_end_);
  histogram("vllm:request_decode_time_seconds", "From the first token to the last.", decode_);
  histogram("vllm:request_queue_time_seconds", "Time spent waiting.", queue_);
  histogram("vllm:request_inference_time_seconds", "Time spent running.", inference_);
  histogram("vllm:request_prefill_time_seconds", "Time spent in prefill.", prefill_);
  histogram("vllm:request_prompt_tokens", "Prompt tokens per request.", prompt_tokens_);
  histogram("vllm:request_generation_tokens", "Tokens generated per answer.", generation_tokens_);
  histogram("vllm:request_max_num_generation_tokens", "Longest answer of a request.",
            generation_tokens_);
  histogram("vllm:request_params_max_tokens", "max_tokens of requests.", max_tokens_);
  histogram("vllm:request_prefill_kv_computed_tokens", "Prompt tokens computed, not cached.",
            computed_prompt_tokens_);
  histogram("vllm:request_params_n", "n of requests.", params_n_);
  histogram("vllm:request_num_preemptions", "Preemptions per request.", preemptions_);
}

void Metrics::WriteSteps(const engine::EngineStats& stats, Exposition* out) const {
  std::vector<double> bounds(engine::kStepTokenBounds.begin(), engine::kStepTokenBounds.end());
  std::vector<int64_t> counts(stats.step_tokens.begin(), stats.step_tokens.end());
  out->HistogramFamily("vllm:iteration_tokens_total", "Tokens per engine step.");
  out->Values(labels_, Histogram(bounds, counts, static_cast<double>(stats.step_tokens_sum)));
}

void Metrics::WriteHttp(Exposition* out) const {
  out->Counter("http_requests", "Answered requests.");
  for (const auto& [key, count] : http_requests_) {
    const auto& [handler, method, status] = key;
    out->Value(MetricLabels({{"handler", handler}, {"method", method}, {"status", status}}),
               static_cast<double>(count));
  }
  out->HistogramFamily("http_request_duration_seconds", "Duration by route.");
  for (const auto& [key, route] : http_routes_) {
    out->Values(MetricLabels({{"handler", key.first}, {"method", key.second}}), route.duration);
  }
  out->HistogramFamily("http_request_duration_highr_seconds", "Duration of all requests.");
  out->Values("", http_duration_);
  WriteSizes("http_request_size_bytes", "Bytes of request bodies.", &HttpRoute::request_bytes, out);
  WriteSizes("http_response_size_bytes", "Bytes of answer bodies.", &HttpRoute::response_bytes,
             out);
}

void Metrics::WriteSizes(std::string_view name, std::string_view help, size_t HttpRoute::*bytes,
                         Exposition* out) const {
  out->SummaryFamily(name, help);
  for (const auto& [key, route] : http_routes_) {
    out->Summary(MetricLabels({{"handler", key.first}, {"method", key.second}}), route.count,
                 static_cast<double>(route.*bytes));
  }
}

}  // namespace fulgur::server

// What the server counts, under the names vLLM gives its series, so that dashboards keep working.
//
// Used from the network thread only. Counters never decrease, and every series exists with value 0
// from the start.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <tuple>

#include "engine/engine.h"
#include "server/prometheus.h"

namespace fulgur::server {

enum class FinishedReason { kStop, kLength, kAbort, kError, kRepetition };

// One finished answer (choice). Times are in seconds; those that do not apply are negative.
struct FinishedChoice {
  FinishedReason reason = FinishedReason::kStop;
  double end_to_end = 0;         // arrival to last token
  double per_output_token = -1;  // first to last token / (tokens - 1)
  int64_t prompt_tokens = 0;
  int64_t output_tokens = 0;
  int64_t max_tokens = 0;
};

// One answered HTTP request.
struct HttpExchange {
  std::string_view handler;  // the route, or "none"
  std::string_view method;
  int status = 200;
  double seconds = 0;
  size_t request_bytes = 0;
  size_t response_bytes = 0;
};

class Metrics {
 public:
  Metrics(std::string model_name, int64_t max_model_len,
          std::map<std::string, std::string> cache_config);

  void OnFirstToken(double seconds_since_arrival) {
    time_to_first_token_.Observe(seconds_since_arrival);
  }
  void OnLaterTokens(double seconds_since_last) {
    inter_token_latency_.Observe(seconds_since_last);
  }
  void OnFinish(const FinishedChoice& choice);
  void OnRecord(const engine::RequestRecord& record);
  void OnRequest(int64_t n) { params_n_.Observe(static_cast<double>(n)); }
  void OnRejection(bool too_many_tokens) { ++rejections_[too_many_tokens ? 1 : 0]; }
  void OnToolParserUse(bool streaming, bool found_call) {
    ++tool_parser_uses_[streaming ? 0 : 1][found_call ? 0 : 1];
  }
  void OnHttp(const HttpExchange& exchange);

  // The text of /metrics.
  std::string Expose(const engine::EngineStats& stats) const;

 private:
  struct HttpRoute {
    Histogram duration{{0.1, 0.5, 1}};
    int64_t count = 0;
    size_t request_bytes = 0;
    size_t response_bytes = 0;
  };

  void WriteEngine(const engine::EngineStats& stats, Exposition* out) const;
  void WriteRequests(Exposition* out) const;
  void WriteHistograms(Exposition* out) const;
  void WriteSteps(const engine::EngineStats& stats, Exposition* out) const;
  void WriteHttp(Exposition* out) const;
  void WriteSizes(std::string_view name, std::string_view help, size_t HttpRoute::*bytes,
                  Exposition* out) const;

  std::string model_label_;  // model_name="..."
  std::string labels_;       // engine="0",model_name="..."
  std::map<std::string, std::string> cache_config_;
  double start_seconds_;

  std::array<int64_t, 5> finished_{};  // by FinishedReason
  std::array<int64_t, 2> rejections_{};
  std::array<std::array<int64_t, 2>, 2> tool_parser_uses_{};
  Histogram time_to_first_token_;
  Histogram inter_token_latency_;
  Histogram time_per_output_token_;
  Histogram end_to_end_;
  Histogram queue_;
  Histogram prefill_;
  Histogram decode_;
  Histogram inference_;
  Histogram computed_prompt_tokens_;
  Histogram preemptions_;
  Histogram prompt_tokens_;
  Histogram generation_tokens_;
  Histogram max_tokens_;
  Histogram params_n_;

  std::map<std::tuple<std::string, std::string, std::string>, int64_t> http_requests_;
  std::map<std::pair<std::string, std::string>, HttpRoute> http_routes_;
  Histogram http_duration_;
};

}  // namespace fulgur::server

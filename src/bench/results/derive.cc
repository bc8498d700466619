#include "bench/results/derive.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace fulgur::bench {
namespace {

std::optional<double> Avg(const MetricMap& metrics, const char* tag) {
  const auto it = metrics.find(tag);
  return it == metrics.end() ? std::nullopt : it->second.avg;
}

std::optional<double> SumOf(const MetricMap& metrics, const char* tag) {
  const auto it = metrics.find(tag);
  return it == metrics.end() ? std::nullopt : it->second.sum;
}

void SetIfAbsent(MetricMap& metrics, const char* tag, std::optional<double> value,
                 std::string_view unit) {
  if (!value || !std::isfinite(*value) || metrics.contains(tag)) return;
  metrics[tag] = Scalar(*value, unit);
}

std::optional<double> Ratio(std::optional<double> a, std::optional<double> b) {
  if (!a || !b || *b <= 0) return std::nullopt;
  return *a / *b;
}

// Files before schema 1.1 carry neither count nor sum. Every valid request has these metrics.
void FillCounts(MetricMap& metrics) {
  const auto requests = Avg(metrics, "request_count");
  for (const char* tag : {"request_latency", "time_to_first_token", "input_sequence_length",
                          "output_sequence_length"}) {
    const auto it = metrics.find(tag);
    if (it == metrics.end() || !it->second.avg) continue;
    MetricBlock& block = it->second;
    if (!block.count && requests && *requests >= 0 && *requests < 1e15) {
      block.count = static_cast<int64_t>(std::llround(*requests));
    }
  }
  for (auto& [tag, block] : metrics) {
    if (block.avg && block.count && !block.sum) {
      block.sum = *block.avg * static_cast<double>(*block.count);
    }
  }
}

void FillTotals(MetricMap& metrics) {
  SetIfAbsent(metrics, "total_osl", SumOf(metrics, "output_sequence_length"), "tokens");
  SetIfAbsent(metrics, "total_isl", SumOf(metrics, "input_sequence_length"), "tokens");
}

void FillRates(MetricMap& metrics) {
  const auto duration = Avg(metrics, "benchmark_duration");
  const auto tokens = Avg(metrics, "total_osl");
  SetIfAbsent(metrics, "fulgur_output_token_throughput_over_duration", Ratio(tokens, duration),
              "tokens/sec");
  if (const auto latency = SumOf(metrics, "request_latency")) {
    SetIfAbsent(metrics, "fulgur_mean_concurrency", Ratio(*latency / 1000.0, duration), "requests");
  }
}

// The token-weighted rate needs every answer to have a token, else "tokens - requests" is wrong.
void FillPerUserRates(MetricMap& metrics) {
  SetIfAbsent(metrics, "fulgur_per_user_harmonic",
              Ratio(1000.0, Avg(metrics, "inter_token_latency")), "tokens/sec/user");
  const auto latency = SumOf(metrics, "request_latency");
  const auto first = SumOf(metrics, "time_to_first_token");
  const auto lengths = metrics.find("output_sequence_length");
  if (!latency || !first || lengths == metrics.end()) return;
  const MetricBlock& length = lengths->second;
  if (!length.sum || !length.count || length.min.value_or(0.0) < 1.0) return;
  const double tokens = *length.sum - static_cast<double>(*length.count);
  if (tokens <= 0) return;
  SetIfAbsent(metrics, "fulgur_per_user_token_weighted",
              Ratio(tokens, (*latency - *first) / 1000.0), "tokens/sec/user");
}

void FillFromChunks(Result& result) {
  std::vector<double> stalls;
  std::vector<double> tokens_per_chunk;
  for (const RequestLine& request : result.requests) {
    const auto& gaps = request.metrics.inter_chunk_latency_ms;
    if (!request.valid()) continue;
    if (!gaps.empty()) stalls.push_back(*std::max_element(gaps.begin(), gaps.end()));
    if (request.metrics.Has("output_sequence_length") && request.metrics.Has("request_latency")) {
      tokens_per_chunk.push_back(request.metrics.Get("output_sequence_length", 0.0) /
                                 static_cast<double>(gaps.size() + 1));
    }
  }
  MetricMap& metrics = result.cell.metrics;
  if (!stalls.empty() && !metrics.contains("fulgur_max_stall")) {
    metrics["fulgur_max_stall"] = Summarize(std::move(stalls), "ms");
    if (!metrics.contains("fulgur_tokens_per_chunk")) {
      metrics["fulgur_tokens_per_chunk"] = Summarize(std::move(tokens_per_chunk), "tokens");
    }
  }
}

}  // namespace

void DeriveMetrics(Result& result) {
  MetricMap& metrics = result.cell.metrics;
  FillCounts(metrics);
  FillTotals(metrics);
  FillRates(metrics);
  FillPerUserRates(metrics);
  FillFromChunks(result);
}

void SummarizeRequests(Result& result) {
  std::map<std::string, std::vector<double>> samples;
  std::vector<double> gaps;
  for (const RequestLine& request : result.requests) {
    if (!request.valid()) continue;
    for (const auto& [tag, value] : request.metrics.values) samples[tag].push_back(value);
    const auto& own = request.metrics.inter_chunk_latency_ms;
    gaps.insert(gaps.end(), own.begin(), own.end());
  }
  MetricMap& metrics = result.cell.metrics;
  for (auto& [tag, values] : samples) {
    metrics[tag] = Summarize(std::move(values), UnitOf(tag));
  }
  if (!gaps.empty()) metrics["inter_chunk_latency"] = Summarize(std::move(gaps), "ms");
}

void MarkHarmonicRate(Result& result) {
  MetricMap& metrics = result.cell.metrics;
  const auto latency = Avg(metrics, "inter_token_latency");
  if (metrics.contains("output_token_throughput_per_user") || !latency || *latency <= 0) return;
  metrics["output_token_throughput_per_user"] = Scalar(1000.0 / *latency, "tokens/sec/user");
  result.cell.environment["rate_per_user"] = "1000 / mean inter-token latency";
}

}  // namespace fulgur::bench

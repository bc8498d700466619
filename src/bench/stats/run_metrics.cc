#include "bench/stats/run_metrics.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <string>
#include <utility>

#include "bench/stats/log_histogram.h"
#include "bench/stats/request_metrics.h"
#include "bench/stats/timeline.h"

namespace fulgur::bench {
namespace {

constexpr double kNsPerSecond = 1e9;
constexpr double kInfinity = std::numeric_limits<double>::infinity();

constexpr size_t kMaxExactGaps = 10'000'000;
constexpr size_t kMaxTurns = 32;

struct TurnValues {
  std::vector<double> first_token_ms;
  std::vector<double> cached_tokens;
};

}  // namespace

// Everything that the parts below read, gathered in one pass.
struct RunAccumulator::Sample {
  std::map<std::string, std::vector<double>> values;    // valid requests, by tag
  std::map<std::string, std::vector<double>> schedule;  // all requests
  // By turn of a conversation, the later ones in the last: how prompts that grow are answered.
  std::array<TurnValues, kMaxTurns> turns;
  std::vector<double> chunk_gaps;  // moved into the histogram when there are too many
  LogHistogram many_chunk_gaps;
  std::vector<double> error_inputs;
  std::vector<RequestSpan> spans;  // all requests
  int64_t valid = 0;
  int64_t failed = 0;
  int64_t unfinished = 0;
  int64_t good = 0;
  int64_t length_mismatches = 0;
  int64_t usage_discrepancies = 0;
  double decode_seconds = 0.0;  // of requests with at least two tokens, for the token-weighted rate
  double decode_tokens = 0.0;
  double first_start_ns = kInfinity;
  double last_output_ns = 0.0;

  void AddGaps(const std::vector<double>& gaps);
  void AddTurn(const RequestRecord& record, const RequestMetrics& metrics);
  void AddValid(const RequestRecord& record, const std::vector<Objective>& objectives);
};

namespace {

using Sample = RunAccumulator::Sample;

// aiperf calls a length wrong if it is off by more than 5 % or 50 tokens, whichever is smaller.
bool IsLengthMismatch(const RequestRecord& record) {
  if (!record.output_tokens || record.requested_output_tokens.value_or(0) <= 0) return false;
  const auto asked = static_cast<double>(*record.requested_output_tokens);
  const double off = std::fabs(static_cast<double>(*record.output_tokens) - asked);
  return off > std::min(0.05 * asked, 50.0);
}

// Only the completion side tells something: a prompt count without the chat template always
// differs.
bool IsUsageDiscrepancy(const RequestMetrics& metrics) {
  return metrics.Get("usage_completion_tokens_diff_pct", 0.0) > 10.0;
}

}  // namespace

void RunAccumulator::Sample::AddGaps(const std::vector<double>& gaps) {
  chunk_gaps.insert(chunk_gaps.end(), gaps.begin(), gaps.end());
  if (many_chunk_gaps.count() == 0 && chunk_gaps.size() <= kMaxExactGaps) return;
  for (const double gap : chunk_gaps) many_chunk_gaps.Add(gap);
  chunk_gaps.clear();
}

void RunAccumulator::Sample::AddTurn(const RequestRecord& record, const RequestMetrics& metrics) {
  const auto turn = static_cast<size_t>(std::max(0, record.turn));
  TurnValues& values_of_turn = turns[std::min(turn, kMaxTurns - 1)];
  if (metrics.Has("time_to_first_token")) {
    values_of_turn.first_token_ms.push_back(metrics.Get("time_to_first_token", 0.0));
  }
  if (record.usage.cached_tokens) {
    values_of_turn.cached_tokens.push_back(static_cast<double>(*record.usage.cached_tokens));
  }
}

void RunAccumulator::Sample::AddValid(const RequestRecord& record,
                                      const std::vector<Objective>& objectives) {
  const RequestMetrics metrics = ComputeRequestMetrics(record);
  ++valid;
  for (const auto& [tag, value] : metrics.values) values[tag].push_back(value);
  AddGaps(metrics.inter_chunk_latency_ms);
  AddTurn(record, metrics);
  if (MeetsAll(metrics, objectives)) ++good;
  if (IsLengthMismatch(record)) ++length_mismatches;
  if (IsUsageDiscrepancy(metrics)) ++usage_discrepancies;
  if (metrics.Has("inter_token_latency")) {
    decode_seconds += metrics.Get("decode_duration", 0.0) / 1000.0;
    decode_tokens += metrics.Get("output_sequence_length", 1.0) - 1.0;
  }
  const auto start = static_cast<double>(record.start_ns);
  first_start_ns = std::min(first_start_ns, start);
  last_output_ns = std::max(last_output_ns, start + metrics.Get("request_latency", 0.0) * 1e6);
}

namespace {

double SumOf(const Sample& sample, const std::string& tag) {
  const auto it = sample.values.find(tag);
  if (it == sample.values.end()) return 0.0;
  return Summarize(it->second, "").sum.value_or(0.0);
}

void AddDistributions(const Sample& sample, MetricMap& metrics) {
  for (const auto& [tag, values] : sample.values) metrics[tag] = Summarize(values, UnitOf(tag));
  for (const auto& [tag, values] : sample.schedule) metrics[tag] = Summarize(values, UnitOf(tag));
  if (sample.many_chunk_gaps.count() > 0) {
    metrics["inter_chunk_latency"] = sample.many_chunk_gaps.Summarize("ms");
  } else if (!sample.chunk_gaps.empty()) {
    metrics["inter_chunk_latency"] = Summarize(sample.chunk_gaps, "ms");
  }
}

// First tokens and cache hits turn by turn, and all turns after the first together. Nothing where
// conversations have one turn.
void AddTurns(const Sample& sample, MetricMap& metrics) {
  std::vector<double> later;
  for (size_t i = 1; i < kMaxTurns; ++i) {
    const auto& values = sample.turns[i].first_token_ms;
    later.insert(later.end(), values.begin(), values.end());
  }
  if (later.empty()) return;
  metrics["fulgur_later_turns_time_to_first_token"] = Summarize(std::move(later), "ms");
  for (size_t i = 0; i < kMaxTurns; ++i) {
    const TurnValues& turn = sample.turns[i];
    const std::string name = "fulgur_turn_" + std::to_string(i + 1);
    if (!turn.first_token_ms.empty()) {
      metrics[name + "_time_to_first_token"] = Summarize(turn.first_token_ms, "ms");
    }
    if (!turn.cached_tokens.empty()) {
      metrics[name + "_cached_tokens"] = Summarize(turn.cached_tokens, "tokens");
    }
  }
}

// How far percentiles that are often quoted may be off by chance.
void AddPercentileBounds(const Sample& sample, MetricMap& metrics) {
  for (const char* tag : {"time_to_first_token", "inter_token_latency", "request_latency"}) {
    const auto found = sample.values.find(tag);
    if (found == sample.values.end()) continue;
    std::vector<double> ascending = found->second;
    std::sort(ascending.begin(), ascending.end());
    for (const int q : {50, 90, 99}) {
      const auto bounds = BoundsOfPercentile(ascending, q);
      if (!bounds) continue;
      const std::string name = "fulgur_" + std::string(tag) + "_p" + std::to_string(q);
      metrics[name + "_low"] = Scalar(bounds->low, "ms");
      metrics[name + "_high"] = Scalar(bounds->high, "ms");
    }
  }
}

void AddTotals(const Sample& sample, MetricMap& metrics) {
  const auto total = [&](const char* name, const char* tag) {
    if (sample.values.contains(tag)) metrics[name] = Scalar(SumOf(sample, tag), "tokens");
  };
  total("total_isl", "input_sequence_length");
  total("total_osl", "output_sequence_length");
  total("total_output_tokens", "output_token_count");
  total("total_reasoning_tokens", "reasoning_token_count");
  total("total_usage_prompt_tokens", "usage_prompt_tokens");
  total("total_usage_completion_tokens", "usage_completion_tokens");
  total("total_usage_total_tokens", "usage_total_tokens");
  total("total_usage_reasoning_tokens", "usage_reasoning_tokens");
  const double prompts = SumOf(sample, "usage_prompt_tokens");
  if (prompts > 0 && sample.values.contains("usage_prompt_cache_read_tokens")) {
    metrics["overall_usage_prompt_cache_read_pct"] =
        Scalar(SumOf(sample, "usage_prompt_cache_read_tokens") / prompts * 100.0, "%");
  }
}

void AddCounts(const Sample& sample, MetricMap& metrics) {
  const auto count = [&](const char* tag, int64_t value) {
    metrics[tag] = Scalar(static_cast<double>(value), "requests");
  };
  count("request_count", sample.valid);
  count("completed_request_count", sample.valid + sample.failed);
  count("osl_mismatch_count", sample.length_mismatches);
  count("usage_discrepancy_count", sample.usage_discrepancies);
  const int64_t all = sample.valid + sample.failed;
  if (all > 0) {
    metrics["request_error_rate"] =
        Scalar(100.0 * static_cast<double>(sample.failed) / static_cast<double>(all), "%");
  }
  if (sample.unfinished > 0) count("fulgur_unfinished_request_count", sample.unfinished);
  if (sample.failed == 0) return;
  count("error_request_count", sample.failed);
  metrics["error_isl"] = Summarize(sample.error_inputs, "tokens");
  metrics["total_error_isl"] = Scalar(metrics["error_isl"].sum.value_or(0.0), "tokens");
}

void AddRates(const Sample& sample, double window_s, MetricMap& metrics) {
  const double input = SumOf(sample, "input_sequence_length");
  const double output = SumOf(sample, "output_sequence_length");
  const double duration_s =
      sample.valid > 0 ? (sample.last_output_ns - sample.first_start_ns) / kNsPerSecond : 0.0;
  if (duration_s > 0) {
    metrics["benchmark_duration"] = Scalar(duration_s, "sec");
    metrics["fulgur_output_token_throughput_over_duration"] =
        Scalar(output / duration_s, "tokens/sec");
    metrics["fulgur_mean_concurrency"] =
        Scalar(SumOf(sample, "request_latency") / 1000.0 / duration_s, "requests");
  }
  if (window_s <= 0) return;
  metrics["request_throughput"] =
      Scalar(static_cast<double>(sample.valid) / window_s, "requests/sec");
  metrics["output_token_throughput"] = Scalar(output / window_s, "tokens/sec");
  metrics["input_token_throughput"] = Scalar(input / window_s, "tokens/sec");
  metrics["total_token_throughput"] = Scalar((input + output) / window_s, "tokens/sec");
}

// Three readings of "tokens per second per user": aiperf averages the reciprocals, which is never
// below the others.
void AddPerUserRates(const Sample& sample, MetricMap& metrics) {
  const auto latency = metrics.find("inter_token_latency");
  if (latency == metrics.end() || latency->second.avg.value_or(0.0) <= 0) return;
  metrics["fulgur_per_user_harmonic"] = Scalar(1000.0 / *latency->second.avg, "tokens/sec/user");
  if (sample.decode_seconds > 0) {
    metrics["fulgur_per_user_token_weighted"] =
        Scalar(sample.decode_tokens / sample.decode_seconds, "tokens/sec/user");
  }
}

void AddGoodput(const Sample& sample, double window_s, MetricMap& metrics) {
  const auto good = static_cast<double>(sample.good);
  const auto all = static_cast<double>(sample.valid + sample.failed);
  metrics["good_request_count"] = Scalar(good, "requests");
  if (window_s > 0) metrics["goodput"] = Scalar(good / window_s, "requests/sec");
  if (all > 0) metrics["good_request_fraction"] = Scalar(good / all, "ratio");
}

// numpy's "nearest": the element at the rounded rank, halves to the even one.
double NearestRank(const std::vector<double>& ascending, int q) {
  const double rank = static_cast<double>(q) / 100.0 * static_cast<double>(ascending.size() - 1);
  return ascending[static_cast<size_t>(std::nearbyint(rank))];
}

// How the tail looks when a failed request counts as one that never ended. Only finite values can
// be written.
MetricBlock FailureInflated(std::vector<double> values, int64_t failed, std::string_view unit) {
  values.insert(values.end(), static_cast<size_t>(failed), kInfinity);
  std::sort(values.begin(), values.end());
  MetricBlock block;
  block.unit = unit;
  for (const int q : kPercentiles) {
    const double value = NearestRank(values, q);
    if (std::isfinite(value)) block.percentiles[q] = value;
  }
  if (std::isfinite(values.front())) block.min = values.front();
  block.count = static_cast<int64_t>(values.size());
  return block;
}

void AddFailureInflated(const Sample& sample, MetricMap& metrics) {
  if (sample.failed == 0) return;
  for (const char* tag :
       {"time_to_first_token", "request_latency", "decode_duration", "inter_token_latency"}) {
    const auto it = sample.values.find(tag);
    if (it == sample.values.end()) continue;
    metrics[std::string("adj_") + tag] = FailureInflated(it->second, sample.failed, "ms");
  }
}

}  // namespace

RunAccumulator::RunAccumulator(std::vector<Objective> objectives)
    : objectives_(std::move(objectives)), sample_(std::make_unique<Sample>()) {}
RunAccumulator::~RunAccumulator() = default;
RunAccumulator::RunAccumulator(RunAccumulator&&) noexcept = default;

int64_t RunAccumulator::valid() const { return sample_->valid; }
int64_t RunAccumulator::failed() const { return sample_->failed; }

void RunAccumulator::Add(const RequestRecord& record) {
  if (record.warmup) return;
  if (record.cancelled && !record.error) {
    ++sample_->unfinished;
    return;
  }
  for (const auto& [tag, value] : ComputeScheduleMetrics(record).values) {
    sample_->schedule[tag].push_back(value);
  }
  sample_->spans.push_back(ToSpan(record));
  if (record.valid()) return sample_->AddValid(record, objectives_);
  ++sample_->failed;
  if (record.input_tokens) {
    sample_->error_inputs.push_back(static_cast<double>(*record.input_tokens));
  }
}

MetricMap RunAccumulator::Compute(const RunWindow& window) const {
  const Sample& sample = *sample_;
  const double window_s = static_cast<double>(window.end_ns - window.start_ns) / kNsPerSecond;
  MetricMap metrics;
  AddDistributions(sample, metrics);
  AddTurns(sample, metrics);
  AddPercentileBounds(sample, metrics);
  AddTotals(sample, metrics);
  AddCounts(sample, metrics);
  AddRates(sample, window_s, metrics);
  AddPerUserRates(sample, metrics);
  if (!objectives_.empty()) AddGoodput(sample, window_s, metrics);
  AddFailureInflated(sample, metrics);
  AddTimelineMetrics(sample.spans, window.start_ns, window.end_ns, metrics);
  return metrics;
}

MetricMap ComputeRunMetrics(const std::vector<RequestRecord>& records, const RunWindow& window,
                            const std::vector<Objective>& objectives) {
  RunAccumulator run(objectives);
  for (const RequestRecord& record : records) run.Add(record);
  return run.Compute(window);
}

}  // namespace fulgur::bench

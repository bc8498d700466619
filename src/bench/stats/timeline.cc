#include "bench/stats/timeline.h"

#include <algorithm>
#include <cmath>
#include <string_view>
#include <utility>

namespace fulgur::bench {
namespace {

constexpr double kNsPerSecond = 1e9;
constexpr double kSteadyPart = 0.95;
constexpr double kFewestLatencies = 3.0;
constexpr int kTimePercentiles[] = {50, 90, 95, 99};

// A step function, as changes in time.
class Steps {
 public:
  void Add(int64_t from_ns, int64_t to_ns, double height) {
    if (to_ns <= from_ns) return;
    changes_.emplace_back(from_ns, height);
    changes_.emplace_back(to_ns, -height);
  }

  struct Piece {
    int64_t start_ns = 0;
    int64_t length_ns = 0;
    double value = 0.0;
  };

  // The pieces between two moments, zero where nothing is.
  std::vector<Piece> Pieces(int64_t start_ns, int64_t end_ns) {
    std::sort(changes_.begin(), changes_.end());
    std::vector<Piece> pieces;
    double value = 0.0;
    int64_t at = start_ns;
    for (const auto& [time, change] : changes_) {
      const int64_t until = std::clamp(time, start_ns, end_ns);
      if (until > at) pieces.push_back({at, until - at, value});
      at = std::max(at, until);
      value += change;
    }
    if (end_ns > at) pieces.push_back({at, end_ns - at, 0.0});
    return pieces;
  }

 private:
  std::vector<std::pair<int64_t, double>> changes_;
};

MetricBlock Weighted(std::vector<Steps::Piece> pieces, std::string_view unit) {
  MetricBlock block;
  block.unit = unit;
  double total = 0.0, sum = 0.0, squares = 0.0;
  for (const Steps::Piece& piece : pieces) {
    const auto weight = static_cast<double>(piece.length_ns);
    total += weight;
    sum += weight * piece.value;
    squares += weight * piece.value * piece.value;
  }
  if (total <= 0.0) return block;
  const double mean = sum / total;
  std::sort(pieces.begin(), pieces.end(),
            [](const auto& a, const auto& b) { return a.value < b.value; });
  block.avg = mean;
  block.min = pieces.front().value;
  block.max = pieces.back().value;
  block.std = std::sqrt(std::max(0.0, squares / total - mean * mean));
  double below = 0.0;
  size_t next = 0;
  for (const int q : kTimePercentiles) {
    while (next + 1 < pieces.size() &&
           below + static_cast<double>(pieces[next].length_ns) < q / 100.0 * total) {
      below += static_cast<double>(pieces[next++].length_ns);
    }
    block.percentiles[q] = pieces[next].value;
  }
  return block;
}

double RateOver(double tokens, int64_t from_ns, int64_t to_ns) {
  return to_ns > from_ns ? tokens / static_cast<double>(to_ns - from_ns) * kNsPerSecond : 0.0;
}

double MeanLatencyNs(const std::vector<RequestSpan>& spans) {
  double sum = 0.0;
  for (const RequestSpan& span : spans) sum += static_cast<double>(span.end_ns - span.start_ns);
  return spans.empty() ? 0.0 : sum / static_cast<double>(spans.size());
}

// Between the first and the last moment that is nearly full.
std::pair<int64_t, int64_t> SteadyWindow(const std::vector<Steps::Piece>& in_flight) {
  double most = 0.0;
  for (const Steps::Piece& piece : in_flight) most = std::max(most, piece.value);
  int64_t start = 0, end = 0;
  for (const Steps::Piece& piece : in_flight) {
    if (piece.value < kSteadyPart * most) continue;
    if (start == 0) start = piece.start_ns;
    end = piece.start_ns + piece.length_ns;
  }
  return {start, end};
}

void AddSteadyState(const std::vector<RequestSpan>& spans,
                    const std::vector<Steps::Piece>& in_flight, Steps& tokens, MetricMap& metrics) {
  const auto [start, end] = SteadyWindow(in_flight);
  if (static_cast<double>(end - start) < kFewestLatencies * MeanLatencyNs(spans)) return;
  const MetricBlock rate = Weighted(tokens.Pieces(start, end), "tokens/sec");
  if (!rate.avg) return;
  metrics["fulgur_steady_output_token_throughput"] = Scalar(*rate.avg, "tokens/sec");
  metrics["fulgur_steady_duration"] =
      Scalar(static_cast<double>(end - start) / kNsPerSecond, "sec");
}

}  // namespace

RequestSpan ToSpan(const RequestRecord& record) {
  RequestSpan span{.start_ns = record.start_ns, .end_ns = record.end_ns};
  if (!record.valid()) return span;
  for (const Frame& frame : record.frames) {
    if (!frame.is_output()) continue;
    if (span.first_ns == 0) span.first_ns = frame.arrival_ns;
    span.last_ns = frame.arrival_ns;
  }
  span.input_tokens = static_cast<double>(record.input_tokens.value_or(0));
  span.output_tokens = static_cast<double>(record.output_tokens.value_or(0));
  return span;
}

void AddTimelineMetrics(const std::vector<RequestSpan>& spans, int64_t start_ns, int64_t end_ns,
                        MetricMap& metrics) {
  if (spans.empty() || end_ns <= start_ns) return;
  Steps requests, prefill, decode, input_tokens, output_tokens;
  for (const RequestSpan& span : spans) {
    requests.Add(span.start_ns, span.end_ns, 1.0);
    if (span.first_ns == 0) continue;
    prefill.Add(span.start_ns, span.first_ns, 1.0);
    decode.Add(span.first_ns, span.last_ns, 1.0);
    input_tokens.Add(span.start_ns, span.first_ns,
                     RateOver(span.input_tokens, span.start_ns, span.first_ns));
    output_tokens.Add(span.first_ns, span.last_ns,
                      RateOver(span.output_tokens - 1.0, span.first_ns, span.last_ns));
  }
  const auto in_flight = requests.Pieces(start_ns, end_ns);
  const auto add = [&](const char* tag, Steps& steps, const char* unit) {
    metrics[tag] = Weighted(steps.Pieces(start_ns, end_ns), unit);
  };
  metrics["effective_concurrency"] = Weighted(in_flight, "requests");
  add("effective_prefill_concurrency", prefill, "requests");
  add("effective_decode_concurrency", decode, "requests");
  add("effective_prefill_throughput", input_tokens, "tokens/sec");
  add("effective_decode_throughput", output_tokens, "tokens/sec");
  AddSteadyState(spans, in_flight, output_tokens, metrics);
}

}  // namespace fulgur::bench

#include "bench/stats/timeline.h"

#include <gmock/gmock.h>

namespace fulgur::bench {
namespace {

constexpr int64_t kSecond = 1'000'000'000;

RequestSpan Span(int64_t start, int64_t first, int64_t last, double output) {
  return {.start_ns = start * kSecond,
          .first_ns = first * kSecond,
          .last_ns = last * kSecond,
          .end_ns = last * kSecond,
          .input_tokens = 10.0,
          .output_tokens = output};
}

TEST(Timeline, WeighsByTime) {
  MetricMap metrics;
  AddTimelineMetrics({Span(10, 12, 14, 5), Span(12, 13, 18, 11)}, 10 * kSecond, 20 * kSecond,
                     metrics);
  const MetricBlock& concurrency = metrics["effective_concurrency"];
  EXPECT_DOUBLE_EQ(*concurrency.avg, 1.0);  // (4 s + 6 s) / 10 s
  EXPECT_DOUBLE_EQ(*concurrency.min, 0.0);
  EXPECT_DOUBLE_EQ(*concurrency.max, 2.0);
  EXPECT_DOUBLE_EQ(concurrency.percentiles.at(50), 1.0);
  EXPECT_DOUBLE_EQ(concurrency.percentiles.at(90), 2.0);
  EXPECT_FALSE(concurrency.count.has_value());
  EXPECT_DOUBLE_EQ(*metrics["effective_prefill_concurrency"].avg, 0.3);
  EXPECT_DOUBLE_EQ(*metrics["effective_decode_concurrency"].avg, 0.7);
  EXPECT_NEAR(*metrics["effective_decode_throughput"].avg, 14.0 / 10.0, 1e-9);
  EXPECT_NEAR(*metrics["effective_decode_throughput"].max, 4.0, 1e-9);  // 2 + 2 tokens/s
  EXPECT_FALSE(metrics.contains("fulgur_steady_duration"));
}

TEST(Timeline, SteadyStateLeavesRampAndDrainOut) {
  std::vector<RequestSpan> spans;
  for (int64_t second = 0; second < 20; ++second) {
    spans.push_back(Span(100 + second, 100 + second, 101 + second, 101));
  }
  for (int64_t second = 5; second < 15; ++second) {
    spans.push_back(Span(100 + second, 100 + second, 101 + second, 101));
  }
  MetricMap metrics;
  AddTimelineMetrics(spans, 100 * kSecond, 120 * kSecond, metrics);
  EXPECT_NEAR(*metrics["fulgur_steady_duration"].avg, 10.0, 1e-9);
  EXPECT_NEAR(*metrics["fulgur_steady_output_token_throughput"].avg, 200.0, 1e-6);
}

}  // namespace
}  // namespace fulgur::bench

#include "bench/results/aiperf_reader.h"

#include <fstream>

#include "bench/results/fixture_files.h"
#include "nlohmann/json.hpp"

namespace fulgur::bench {
namespace {

using Json = nlohmann::json;

// Rates rest on a window that the file gives in microseconds.
constexpr double kRelative = 1e-6;
constexpr double kRelativeOfRates = 1e-5;

void ExpectClose(double expected, std::optional<double> value, double relative,
                 const std::string& what) {
  ASSERT_TRUE(value.has_value()) << what;
  EXPECT_NEAR(*value, expected, relative * std::max(std::fabs(expected), 1e-3)) << what;
}

std::optional<double> Avg(const Result& result, const std::string& tag) {
  const auto it = result.cell.metrics.find(tag);
  return it == result.cell.metrics.end() ? std::nullopt : it->second.avg;
}

Json Expected() { return Json::parse(std::ifstream(kTestData / "real/expected.json")); }

class RealAiperfTest : public ::testing::TestWithParam<std::string> {};

TEST_P(RealAiperfTest, GivesTheValuesComputedFromTheRecords) {
  const Json expected = Expected()[GetParam()];
  const Result result = ReadOne(kTestData / "real" / GetParam() / "profile_export_aiperf.json");
  EXPECT_TRUE(result.problems.empty()) << result.problems.front();
  EXPECT_EQ(result.cell.tool_version, expected["aiperf_version"]);
  ExpectClose(expected["valid"], Avg(result, "request_count"), 0, "valid");
  ExpectClose(expected["errors"], Avg(result, "error_request_count"), 0, "errors");
  ExpectClose(expected["total_osl"], Avg(result, "total_osl"), 0, "total_osl");
  ExpectClose(expected["total_isl"], Avg(result, "total_isl"), 0, "total_isl");
  ExpectClose(expected["benchmark_duration_s"], Avg(result, "benchmark_duration"), kRelative,
              "duration");
  ExpectClose(expected["phase_window_s"], result.window_s, kRelative, "window");
  ExpectClose(expected["request_throughput"], Avg(result, "request_throughput"), kRelativeOfRates,
              "request_throughput");
  ExpectClose(expected["output_token_throughput"], Avg(result, "output_token_throughput"),
              kRelativeOfRates, "output_token_throughput");
  ExpectClose(expected["mean_concurrency"], Avg(result, "fulgur_mean_concurrency"), kRelative,
              "mean_concurrency");
  ExpectClose(expected["per_user_arithmetic"], Avg(result, "output_token_throughput_per_user"),
              kRelative, "arithmetic");
  ExpectClose(expected["per_user_harmonic"], Avg(result, "fulgur_per_user_harmonic"), kRelative,
              "harmonic");
  ExpectClose(expected["per_user_token_weighted"], Avg(result, "fulgur_per_user_token_weighted"),
              kRelative, "token weighted");
}

TEST_P(RealAiperfTest, GivesEveryBlockOfTheRecords) {
  const Json expected = Expected()[GetParam()];
  const Result result = ReadOne(kTestData / "real" / GetParam() / "profile_export_aiperf.json");
  for (const auto& [tag, block] : expected["blocks"].items()) {
    ASSERT_TRUE(result.cell.metrics.contains(tag)) << tag;
    // Release 0.11 estimates the percentiles of pooled gaps.
    const bool estimated = GetParam() == "aiperf_0_11" && tag == "inter_chunk_latency";
    for (const auto& [statistic, value] : block.items()) {
      if (estimated && statistic[0] == 'p') continue;
      ExpectClose(value, Statistic(result.cell.metrics.at(tag), statistic), kRelative,
                  tag + "." + statistic);
    }
  }
}

TEST_P(RealAiperfTest, KeepsTheRequests) {
  const Json expected = Expected()[GetParam()];
  const Result result = ReadOne(kTestData / "real" / GetParam() / "profile_export_aiperf.json");
  ASSERT_EQ(result.requests.size(), expected["records"].get<size_t>());
  const auto count = [&result](auto predicate) {
    return std::count_if(result.requests.begin(), result.requests.end(), predicate);
  };
  EXPECT_EQ(count([](const RequestLine& line) { return line.warmup; }), expected["warmup_records"]);
  EXPECT_EQ(count([](const RequestLine& line) { return line.valid(); }), expected["valid"]);
  EXPECT_EQ(count([](const RequestLine& line) { return line.cancelled; }), expected["cancelled"]);
  std::map<std::string, int64_t> by_code;
  for (const ErrorGroup& group : result.cell.errors) {
    by_code[group.code ? std::to_string(*group.code) : "None"] += group.count;
  }
  for (const auto& [code, number] : expected["errors_by_code"].items()) {
    EXPECT_EQ(by_code[code], number) << code;
  }
}

INSTANTIATE_TEST_SUITE_P(Files, RealAiperfTest,
                         ::testing::Values("mixed", "cancel", "warmup_gpu", "aiperf_0_11"));

TEST(AiperfReaderTest, ReadsPlanAndPhases) {
  const Result result = ReadOne(kTestData / "real/warmup_gpu/profile_export_aiperf.json");
  EXPECT_EQ(result.cell.concurrency, 3);
  EXPECT_FALSE(result.cell.warmup_metrics.empty());
  ASSERT_EQ(result.cell.phases.size(), 2U);
  EXPECT_EQ(result.cell.phases[0].name, "warmup");
  EXPECT_LE(result.cell.phases[0].wall_start_ns, result.cell.phases[1].wall_start_ns);
  EXPECT_EQ(result.plan.input_length->mean, 32);
}

Result Parse(const std::string& text) {
  auto results = ParseResults(text, "cell.json");
  EXPECT_TRUE(results.ok()) << results.status();
  return results.ok() ? results->front() : Result();
}

TEST(AiperfReaderTest, ReadsTheFirstReleases) {
  const Result result = Parse(R"({
    "request_throughput": {"unit": "requests/sec", "avg": 2.0},
    "request_latency": {"unit": "ms", "avg": 400.0, "p50": 390.0, "min": 300.0, "max": 500.0, "std": 5.0},
    "request_count": {"unit": "requests", "avg": 10.0},
    "output_sequence_length": {"unit": "tokens", "avg": 12.0, "p50": 12.0, "min": 12.0},
    "benchmark_duration": {"unit": "sec", "avg": 5.0},
    "input_config": {"endpoint": {"model_names": ["m"], "type": "chat", "url": "http://h", "streaming": true},
      "loadgen": {"concurrency": 4, "request_rate": null, "request_count": 10},
      "input": {"prompt": {"input_tokens": {"mean": 128, "stddev": 0}, "output_tokens": {"mean": 12}},
                "extra": [["ignore_eos", "true"]], "random_seed": 7},
      "cli_command": "aiperf profile --concurrency 4"},
    "was_cancelled": false})");
  EXPECT_EQ(result.cell.concurrency, 4);
  EXPECT_EQ(result.plan.random_seed, 7);
  EXPECT_EQ(result.plan.extra.at("ignore_eos"), "\"true\"");
  EXPECT_EQ(result.cell.metrics.at("request_latency").count, 10);
  EXPECT_DOUBLE_EQ(*result.cell.metrics.at("request_latency").sum, 4000.0);
  EXPECT_DOUBLE_EQ(*Avg(result, "total_osl"), 120.0);
  EXPECT_FALSE(result.cell.metrics.contains("time_to_first_token"));
}

// The writer in Rust: scalars with min and max, no sums, no window, empty run_info.
TEST(AiperfReaderTest, ReadsTheNativeWriter) {
  const Result result = Parse(R"({"schema_version": "1.4",
    "request_throughput": {"unit": "requests/sec", "avg": 2.0, "min": 2.0, "max": 2.0},
    "request_count": {"unit": "requests", "avg": 3.0, "min": 3.0, "max": 3.0, "sum": 3.0},
    "request_latency": {"unit": "ms", "avg": 2.5, "p50": 2.5, "min": 2.0, "max": 3.0, "count": 3},
    "benchmark_duration": {"unit": "sec", "avg": 1.5, "min": 1.5, "max": 1.5},
    "input_config": {"phases": [{"name": "profiling", "type": "concurrency", "concurrency": 3}]},
    "run_info": {}})");
  EXPECT_EQ(result.cell.concurrency, 3);
  EXPECT_DOUBLE_EQ(*result.cell.metrics.at("request_latency").sum, 7.5);
  EXPECT_FALSE(result.window_s.has_value());
}

TEST(AiperfReaderTest, ConvertsUnits) {
  const Result result = Parse(R"({"request_latency": {"unit": "us", "avg": 2500, "p50": 2000},
    "time_to_first_token": {"unit": "s", "avg": 0.25},
    "benchmark_duration": {"unit": "ms", "avg": 1500}})");
  EXPECT_DOUBLE_EQ(*Avg(result, "request_latency"), 2.5);
  EXPECT_DOUBLE_EQ(result.cell.metrics.at("request_latency").percentiles.at(50), 2.0);
  EXPECT_DOUBLE_EQ(*Avg(result, "time_to_first_token"), 250);
  EXPECT_DOUBLE_EQ(*Avg(result, "benchmark_duration"), 1.5);
}

TEST(AiperfReaderTest, LeavesOutMetricsInForeignUnits) {
  const Result result = Parse(R"({"benchmark_duration": {"unit": "sec", "avg": 1},
    "time_to_first_token": {"unit": "tokens", "avg": 3}, "total_osl": {"unit": "ms", "avg": 3},
    "request_latency": {"unit": "fortnights", "avg": 3}, "a_new_metric": {"unit": "widgets", "avg": 1}})");
  ASSERT_EQ(result.problems.size(), 3U);
  EXPECT_THAT(result.problems[0],
              ::testing::HasSubstr("time_to_first_token has the unit \"tokens\""));
  EXPECT_FALSE(result.cell.metrics.contains("time_to_first_token"));
  EXPECT_TRUE(result.cell.metrics.contains("a_new_metric"));
}

TEST(AiperfReaderTest, ZeroIsMeasuredAndAbsentIsNot) {
  const Result result = Parse(R"({"benchmark_duration": {"unit": "sec", "avg": 1},
    "inter_token_latency": {"unit": "ms", "avg": 0.0, "p50": 0, "count": 4},
    "time_to_first_token": {"unit": "ms", "avg": null}, "request_latency": null})");
  EXPECT_EQ(Avg(result, "inter_token_latency"), 0.0);
  EXPECT_FALSE(result.cell.metrics.contains("time_to_first_token"));
  EXPECT_FALSE(result.cell.metrics.contains("request_latency"));
  EXPECT_FALSE(result.cell.metrics.contains("fulgur_per_user_harmonic"));
}

TEST(AiperfReaderTest, SkipsBrokenLinesAndSaysHowMany) {
  const std::string good =
      R"({"metadata": {"session_num": 1, "benchmark_phase": "profiling", "request_start_ns": 5,)"
      R"( "request_end_ns": 9}, "metrics": {"request_latency": {"value": 4, "unit": "ns"}}})";
  Result result;
  ReadRequestLines(good + "\n\nnonsense\n{\"metadata\": {}}\n" + good.substr(0, 60), "r.jsonl",
                   result);
  ASSERT_EQ(result.requests.size(), 1U);
  EXPECT_DOUBLE_EQ(result.requests[0].metrics.Get("request_latency", 0), 4e-6);
  ASSERT_EQ(result.problems.size(), 1U);
  EXPECT_THAT(result.problems[0],
              ::testing::HasSubstr("3 line(s) skipped; line 3: the line is not"));
}

TEST(AiperfReaderTest, ReadsTimeSlices) {
  const auto slices =
      ReadTimeSlices(kTestData / "real/mixed/profile_export_aiperf_timeslices.json");
  ASSERT_TRUE(slices.ok()) << slices.status();
  ASSERT_EQ(slices->size(), 2U);
  EXPECT_EQ(slices->front().start_ns, 1796053097740990720);
  EXPECT_EQ(slices->front().metrics.at("output_token_throughput").avg, 81.0);
  EXPECT_TRUE(slices->back().complete);
  EXPECT_FALSE(ReadTimeSlices(kTestData / "real/mixed/inputs.json").ok());
}

}  // namespace
}  // namespace fulgur::bench

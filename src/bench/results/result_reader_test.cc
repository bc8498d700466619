#include "bench/results/result_reader.h"

#include <cmath>
#include <fstream>

#include "bench/results/aiperf_draws.h"
#include "bench/results/fixture_files.h"
#include "fmt/format.h"
#include "nlohmann/json.hpp"

namespace fulgur::bench {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

double Avg(const Result& result, const std::string& tag) {
  const auto it = result.cell.metrics.find(tag);
  return it == result.cell.metrics.end() || !it->second.avg ? NAN : *it->second.avg;
}

double At(const Result& result, const std::string& tag, std::string_view statistic) {
  const auto it = result.cell.metrics.find(tag);
  if (it == result.cell.metrics.end()) return NAN;
  return Statistic(it->second, statistic).value_or(NAN);
}

TEST(VllmBenchTest, ReadsDetailsByMeaning) {
  const Result result = ReadOne(kTestData / "real/vllm_bench_0_33/openai-chat.json");
  const auto file =
      nlohmann::json::parse(std::ifstream(kTestData / "real/vllm_bench_0_33/openai-chat.json"));
  EXPECT_EQ(result.cell.kind, ResultKind::kVllmBench);
  EXPECT_EQ(result.cell.concurrency, 2);
  EXPECT_EQ(Avg(result, "request_count"), 16);
  EXPECT_EQ(Avg(result, "error_request_count"), 8);
  // What it calls TPOT is the inter-token latency, and its ITL the gaps between messages.
  EXPECT_NEAR(Avg(result, "inter_token_latency"), file["mean_tpot_ms"], 1e-6);
  EXPECT_NEAR(Avg(result, "inter_chunk_latency"), file["mean_itl_ms"], 1e-6);
  EXPECT_NEAR(Avg(result, "time_to_first_token"), file["mean_ttft_ms"], 1e-6);
  EXPECT_NEAR(At(result, "time_to_first_token", "p99"), file["p99_ttft_ms"], 1e-6);
  EXPECT_NEAR(At(result, "time_to_first_token", "std"), file["std_ttft_ms"], 1e-6);
  EXPECT_NEAR(Avg(result, "total_osl"), 142, 0);
  // Answers that came in one message have no rate; the mean is over the others.
  EXPECT_NEAR(Avg(result, "output_token_throughput_per_user"), 125.651, 1e-3);
  EXPECT_FALSE(result.cell.environment.contains("rate_per_user"));
  int64_t errors = 0;
  for (const ErrorGroup& group : result.cell.errors) errors += group.count;
  EXPECT_EQ(errors, 8);
}

TEST(VllmBenchTest, MarksTheHarmonicRateOfFilesWithoutDetails) {
  const Result result = ReadOne(kTestData / "real/vllm_bench_0_33/openai.json");
  EXPECT_TRUE(result.requests.empty());
  EXPECT_NEAR(Avg(result, "output_token_throughput_per_user"), 1000 / 2.9577226835633414, 1e-9);
  EXPECT_TRUE(result.cell.environment.contains("rate_per_user"));
  EXPECT_FALSE(result.cell.metrics.contains("goodput"));
}

TEST(VllmBenchTest, OldAndNewClientsDifferInTheFirstToken) {
  const Result old_client = ReadOne(kTestData / "worked_example/vllm_bench_result.json");
  const Result new_client = ReadOne(kTestData / "worked_example/vllm_bench_result_0_33.json");
  EXPECT_NEAR(Avg(old_client, "time_to_first_token"), 212.5, 1e-6);
  EXPECT_NEAR(Avg(old_client, "inter_token_latency"), 13.824315, 1e-6);
  EXPECT_NEAR(Avg(new_client, "time_to_first_token"), 250, 1e-6);
  EXPECT_NEAR(Avg(new_client, "inter_token_latency"), 9.657648, 1e-6);
  EXPECT_NEAR(Avg(new_client, "output_token_throughput_per_user"), 109.722222, 1e-6);
  EXPECT_TRUE(old_client.cell.environment.contains("first_token"));
  EXPECT_FALSE(new_client.cell.environment.contains("first_token"));
}

TEST(SglangTest, ReadsOneResultALine) {
  const std::vector<Result> results = ReadAll(kTestData / "sglang/results.jsonl");
  ASSERT_EQ(results.size(), 2U);
  EXPECT_EQ(results[0].cell.kind, ResultKind::kSglang);
  EXPECT_EQ(results[1].cell.concurrency, 8);
  EXPECT_EQ(Avg(results[0], "inter_token_latency"), 5.0);
  EXPECT_EQ(At(results[0], "inter_chunk_latency", "p95"), 17.4);
  EXPECT_EQ(At(results[0], "request_latency", "p50"), 800.5);
  EXPECT_EQ(Avg(results[0], "spec_decode_acceptance_length"), 3.01);
  EXPECT_EQ(Avg(results[0], "output_token_throughput_per_user"), 200.0);
}

TEST(GuidellmTest, ReadsLatenciesInAiperfsMeaning) {
  const std::vector<Result> results = ReadAll(kTestData / "real/guidellm_0_8/benchmarks.json");
  ASSERT_EQ(results.size(), 1U);
  const Result& result = results.front();
  EXPECT_EQ(result.cell.concurrency, 2);
  EXPECT_EQ(Avg(result, "request_count"), 13);
  EXPECT_EQ(Avg(result, "error_request_count"), 10);
  ASSERT_EQ(result.requests.size(), 13U);
  EXPECT_NEAR(Avg(result, "time_to_first_token"), 272.9893280909612, 1e-3);
  EXPECT_NEAR(Avg(result, "total_osl"), 113, 1e-9);
  // Its own latency (376.7 ms) ends with the response, ours with the last token.
  EXPECT_LT(Avg(result, "request_latency"), 376.74);
  EXPECT_NEAR(Avg(result, "fulgur_per_user_token_weighted"), 1000 / 9.392788410186768, 1e-3);
  EXPECT_NEAR(Avg(result, "output_token_throughput"), 17.384376901591327, 1e-9);
}

TEST(EvalscopeTest, ReadsSummaryAndPercentiles) {
  const Result result = ReadOne(kTestData / "real/evalscope_1_14/chat/benchmark_summary.json");
  EXPECT_EQ(result.cell.concurrency, 2);
  EXPECT_EQ(Avg(result, "request_count"), 16);
  EXPECT_EQ(Avg(result, "total_osl"), 134);
  EXPECT_EQ(Avg(result, "request_latency"), 211.4);
  EXPECT_EQ(Avg(result, "time_to_first_token"), 127.32);
  EXPECT_EQ(At(result, "time_to_first_token", "min"), 0.0);
  EXPECT_EQ(At(result, "inter_token_latency", "min"), 6.4012);
  EXPECT_EQ(At(result, "output_token_throughput_per_user", "min"), 27.5878);
  EXPECT_NEAR(Avg(result, "output_token_throughput_per_user"), 1000 / 13.35, 1e-9);
}

TEST(AisbenchTest, ReadsNumbersWithTheirUnits) {
  const Result result = ReadOne(kTestData / "aisbench/gsm8kdataset.json");
  EXPECT_EQ(result.cell.concurrency, 32);
  EXPECT_EQ(Avg(result, "request_count"), 30);
  EXPECT_EQ(Avg(result, "error_request_count"), 2);
  EXPECT_NEAR(Avg(result, "benchmark_duration"), 40.1526953, 1e-9);
  EXPECT_EQ(Avg(result, "output_token_throughput"), 3060.3176);
  EXPECT_EQ(Avg(result, "time_to_first_token"), 1686.1383);
  EXPECT_EQ(At(result, "time_to_first_token", "p90"), 2900.0);
  EXPECT_EQ(Avg(result, "inter_token_latency"), 9.3412);
  EXPECT_EQ(At(result, "output_sequence_length", "count"), 30);
  EXPECT_NEAR(Avg(result, "output_token_throughput_per_user"), 1000 / 9.3412, 1e-9);
}

TEST(InferenceXTest, ReadsSecondsAndRatesPerGpu) {
  const std::vector<Result> results = ReadAll(kTestData / "inferencex/agg_bmk.json");
  ASSERT_EQ(results.size(), 2U);
  const Result& whole = results[0];
  EXPECT_EQ(whole.cell.kind, ResultKind::kInferenceX);
  EXPECT_EQ(whole.cell.scenario, "sum");
  EXPECT_EQ(whole.cell.concurrency, 16);
  EXPECT_NEAR(Avg(whole, "time_to_first_token"), 250.0, 1e-9);
  EXPECT_NEAR(At(whole, "inter_token_latency", "p99"), 30.0, 1e-9);
  EXPECT_NEAR(Avg(whole, "inter_chunk_latency"), 60.0, 1e-9);
  EXPECT_NEAR(Avg(whole, "output_token_throughput"), 640.0, 1e-9);
  EXPECT_NEAR(Avg(whole, "output_token_throughput_per_user"), 50.0, 1e-9);
  EXPECT_NEAR(At(whole, "output_token_throughput_per_user", "p50"), 50.25, 1e-9);
  EXPECT_THAT(whole.problems, ElementsAre(HasSubstr("1 entries are no results")));
  // Output of a disaggregated run is told per decode GPU.
  EXPECT_EQ(results[1].cell.scenario, "in8192out1024");
  EXPECT_NEAR(Avg(results[1], "output_token_throughput"), 1600.0, 1e-9);
}

TEST(Ds4Test, ReadsARowForEachContextLength) {
  const std::vector<Result> results = ReadAll(kTestData / "ds4/bench.csv");
  ASSERT_EQ(results.size(), 2U);
  EXPECT_EQ(results[1].cell.kind, ResultKind::kDs4);
  EXPECT_EQ(results[1].cell.scenario, "ctx4096");
  EXPECT_EQ(results[1].cell.concurrency, 1);
  EXPECT_EQ(Avg(results[0], "output_token_throughput_per_user"), 25.0);
  EXPECT_EQ(Avg(results[0], "inter_token_latency"), 40.0);
  EXPECT_EQ(Avg(results[0], "prefill_throughput_per_user"), 412.5);
  EXPECT_THAT(results[0].problems, ElementsAre(HasSubstr("row 4: a column lacks a number")));
}

TEST(TelemetryTest, SummaryOfDevicesComesWithTheResult) {
  const Result result = ReadOne(kTestData / "real/warmup_gpu/profile_export_aiperf.json");
  ASSERT_TRUE(result.utilisation.has_value());
  EXPECT_EQ(result.utilisation->devices, 2);
  EXPECT_EQ(result.utilisation->samples, 6);
  EXPECT_NEAR(*result.utilisation->busy_avg, 73.17383333333333, 1e-9);
  EXPECT_NEAR(*result.utilisation->power_avg_w, 302.67383333333333 + 303.67383333333333, 1e-9);
  EXPECT_NEAR(*result.utilisation->energy_j, 292.130613 + 292.130937, 1e-3);
  EXPECT_NEAR(*result.utilisation->device_memory_max_mb, 62.9196 * 1e9 / 1048576, 2.0);
}

TEST(TelemetryTest, ServerMetricsFillWhatTheResultLacks) {
  const std::filesystem::path folder = std::filesystem::path(testing::TempDir()) / "server_metrics";
  std::filesystem::create_directories(folder);
  std::filesystem::copy_file(kTestData / "real/mixed/profile_export_aiperf.json",
                             folder / "profile_export_aiperf.json",
                             std::filesystem::copy_options::overwrite_existing);
  const auto series = [](const std::string& labels, double total) {
    return fmt::format(R"({{"labels": {{{}}}, "stats": {{"total": {}}}}})", labels, total);
  };
  const std::string metrics = fmt::format(
      R"("vllm:spec_decode_num_drafts": {{"series": [{}, {}]}},
         "vllm:spec_decode_num_draft_tokens": {{"series": [{}]}},
         "vllm:spec_decode_num_accepted_tokens": {{"series": [{}]}},
         "vllm:spec_decode_num_accepted_tokens_per_pos": {{"series": [{}, {}]}})",
      series(R"("engine": "0")", 60), series(R"("engine": "1")", 40), series("", 200),
      series("", 120), series(R"("position": "0")", 80), series(R"("position": "1")", 40));
  std::ofstream(folder / "server_metrics_export.json")
      << R"({"summary": {"phase_time_ranges": {"profiling": {"start_ns": 1000, "end_ns": 5000}}},)"
      << R"("metrics": {)" << metrics << "}}";
  const Result result = ReadOne(folder / "profile_export_aiperf.json");
  EXPECT_NEAR(Avg(result, "spec_decode_acceptance_length"), 2.2, 1e-9);
  EXPECT_NEAR(Avg(result, "spec_decode_draft_acceptance_rate"), 0.6, 1e-9);
  EXPECT_NEAR(Avg(result, "fulgur_acceptance_rate_position_1"), 0.8, 1e-9);
  EXPECT_NEAR(Avg(result, "fulgur_acceptance_rate_position_2"), 0.4, 1e-9);
  ASSERT_FALSE(result.cell.phases.empty());
  EXPECT_EQ(result.cell.phases.back().wall_end_ns, 5000);
  std::ofstream(folder / "server_metrics_export.json") << R"({"summary": )";
  EXPECT_THAT(ReadOne(folder / "profile_export_aiperf.json").problems,
              ElementsAre(HasSubstr("server_metrics_export.json")));
}

std::string ErrorOf(const std::string& text) {
  const auto results = ParseResults(text, "x.json");
  EXPECT_FALSE(results.ok()) << text;
  return results.ok() ? "" : Sentence(results.status());
}

TEST(ResultReaderTest, SaysWhatAFileIsInstead) {
  EXPECT_EQ(ErrorOf(""), "x.json is empty");
  EXPECT_EQ(ErrorOf(" \n "), "x.json is empty");
  EXPECT_THAT(ErrorOf(R"({"request_latency": {"unit": "ms", "avg": 1)"),
              HasSubstr("as if it was cut off"));
  EXPECT_THAT(ErrorOf("PK\x03\x04"), HasSubstr("not valid JSON"));
  EXPECT_THAT(ErrorOf("[1, 2]"), HasSubstr("a JSON list, but not one of results of InferenceX"));
  EXPECT_THAT(ErrorOf("3"), HasSubstr("no object with results"));
  EXPECT_THAT(ErrorOf("ctx_tokens,gen_tps\n1,fast\n"), HasSubstr("row 2: a column lacks a number"));
  EXPECT_THAT(ErrorOf(R"({"timeslices": []})"), HasSubstr("aiperf's time slices"));
  EXPECT_THAT(ErrorOf(R"({"name": "eslint"})"), HasSubstr("not a result file that is known here"));
  EXPECT_THAT(ErrorOf(R"({"benchmark_duration": {"unit": "sec", "avg": NaN}})"),
              HasSubstr("not valid JSON"));
  EXPECT_THAT(ErrorOf(std::string(100, '[') + std::string(100, ']')), HasSubstr("deeper than"));
  EXPECT_THAT(ErrorOf("{\"a\": 1}\n{\"b\": 2}\n"), HasSubstr("line 1 is not a result of SGLang"));
  EXPECT_THAT(ErrorOf(R"({"format": "fulgur-reference/1", "metrics": {}})"),
              HasSubstr("without a number"));
}

TEST(ResultReaderTest, MissingFilesAreNamed) {
  const auto results = ReadResultFile("no/such/file.json");
  ASSERT_FALSE(results.ok());
  EXPECT_THAT(Sentence(results.status()), HasSubstr("no/such/file.json"));
}

TEST(ResultReaderTest, KnowsTheOtherFilesOfTheFolder) {
  for (const char* file : {"inputs.json", "outputs.json", "profile_export_aiperf_timeslices.json",
                           "server_metrics_export.json"}) {
    EXPECT_FALSE(ReadResultFile(kTestData / "real/mixed" / file).ok()) << file;
  }
}

TEST(ResultReaderTest, DamagedListsAreLeftOut) {
  const auto results = ParseResults(
      R"({"backend": "vllm", "duration": 2.0, "completed": 2, "failed": 0, "mean_ttft_ms": 3.0,
          "mean_tpot_ms": 2.0, "input_lens": [1, 2], "output_lens": [5], "ttfts": [0.1, 0.2],
          "itls": [[], []], "errors": ["", ""]})",
      "v.json");
  ASSERT_TRUE(results.ok());
  EXPECT_TRUE(results->front().requests.empty());
  ASSERT_EQ(results->front().problems.size(), 1U);
  EXPECT_EQ(Avg(results->front(), "time_to_first_token"), 3.0);
}

TEST(AiperfDrawsTest, AreThoseOfTheReleasesFrom010To013) {
  const auto draws = AiperfLengthDraws({{{16384, 1024}, {4096, 256}, 100}}, 42, 50);
  ASSERT_EQ(draws.size(), 50U);
  EXPECT_EQ(draws[0].input, 19515);
  EXPECT_EQ(draws[0].output, 4496);
  EXPECT_EQ(draws[1].input, 16782);
  EXPECT_EQ(draws[1].output, 4262);
  EXPECT_EQ(draws[2].output, 4486);
  std::vector<int64_t> refused;
  int64_t input = 0, output = 0;
  for (const LengthDraw& draw : draws) {
    if (draw.output < 4096) {
      refused.push_back(draw.output);
    } else {
      input += draw.input;
      output += draw.output;
    }
  }
  std::sort(refused.begin(), refused.end());
  EXPECT_THAT(refused,
              ::testing::ElementsAre(3730, 3770, 3812, 3844, 3860, 3868, 3928, 3930, 3933, 3964,
                                     3966, 3972, 3981, 4000, 4004, 4037, 4048, 4058, 4094));
  EXPECT_EQ(input, 511791);
  EXPECT_EQ(output, 134280);
}

TEST(AiperfDrawsTest, RefusesWhatHasNoDistribution) {
  EXPECT_TRUE(AiperfLengthDraws({}, 1, 10).empty());
  EXPECT_TRUE(AiperfLengthDraws({{{1, 0}, {1, 0}, 0}}, 1, 10).empty());
  EXPECT_TRUE(AiperfLengthDraws({{{-5, 1}, {1, 0}, 1}}, 1, 10).empty());
}

}  // namespace
}  // namespace fulgur::bench

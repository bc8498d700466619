#include "bench/results/aiperf_writer.h"

#include <cmath>
#include <fstream>
#include <sstream>

#include "bench/results/csv.h"
#include "bench/results/fixture_files.h"
#include "bench/results/run_file.h"
#include "bench/stats/run_metrics.h"
#include "nlohmann/json.hpp"

namespace fulgur::bench {
namespace {

namespace fs = std::filesystem;
using OrderedJson = nlohmann::ordered_json;

std::string ReadText(const fs::path& file) {
  std::ostringstream text;
  text << std::ifstream(file, std::ios::binary).rdbuf();
  return text.str();
}

class AiperfWriterTest : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::path(::testing::TempDir()) /
              ::testing::UnitTest::GetInstance()->current_test_info()->name();
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  fs::path folder_;
};

RequestRecord Record(int64_t session, int64_t start_ms) {
  RequestRecord record;
  record.session = session;
  record.request_id = "id-" + std::to_string(session);
  record.start_ns = (5000 + start_ms) * 1'000'000;
  record.scheduled_ns = record.start_ns - 1'000'000;
  record.wall_start_ns = 1'786'000'000'000'000'000 + start_ms * 1'000'000;
  record.ack_ns = record.start_ns + 2'000'000;
  for (const int64_t at_ms : {100, 130, 170}) {
    record.frames.push_back({record.start_ns + at_ms * 1'000'000, FrameKind::kContent, 2});
  }
  record.end_ns = record.start_ns + 171'000'000;
  record.input_tokens = 32;
  record.output_tokens = 6;
  record.requested_output_tokens = 6;
  return record;
}

RunPlan Plan() {
  RunPlan plan;
  plan.benchmark_id = "a1b2c3d4e5f6";
  plan.models = {"m, with a comma"};
  plan.urls = {"http://127.0.0.1:8000"};
  plan.extra = {{"ignore_eos", "true"}, {"min_tokens", "\"osl\""}};
  plan.sequence_distribution = {{{128, 8}, {6, 0}, 1.0}};
  plan.phases = {{"profiling", "concurrency", 3, std::nullopt, 2, std::nullopt}};
  plan.random_seed = 42;
  plan.token_source = "usage";
  plan.command_line = "fulgur bench run --concurrency 2";
  return plan;
}

struct SmallRunResult {
  std::vector<RequestRecord> records;
  Cell cell;
};

SmallRunResult SmallRun() {
  SmallRunResult run;
  run.records = {Record(0, 0), Record(1, 5)};
  RequestRecord failed = Record(2, 200);
  failed.frames.clear();
  failed.error = RequestError{400, "Bad Request", "line\nwith \"quotes\" and \xff"};
  run.records.push_back(failed);
  run.cell.metrics = ComputeRunMetrics(run.records, {4'999'000'000, 5'380'000'000}, {});
  run.cell.errors = GroupErrors(run.records);
  run.cell.scenario = "chat";
  run.cell.environment = {{"engine", "fulgur 0.1.0"}};
  run.cell.phases = {{"profiling", 1'786'000'000'000'000'000, 1'786'000'000'381'000'000}};
  return run;
}

void Write(const SmallRunResult& run, const fs::path& folder) {
  ASSERT_TRUE(WriteAiperfSummary(folder / "profile_export_aiperf.json", Plan(), run.cell).ok());
  ASSERT_TRUE(WriteAiperfCsv(folder / "profile_export_aiperf.csv", run.cell).ok());
  auto writer = RecordWriter::Open(folder / "profile_export.jsonl");
  ASSERT_TRUE(writer.ok());
  for (const RequestRecord& record : run.records) ASSERT_TRUE(writer->Append(record).ok());
  ASSERT_TRUE(writer->Close().ok());
  ASSERT_TRUE(WriteRunFile(folder / "fulgur_run.json", Plan(), run.cell, {}).ok());
}

TEST_F(AiperfWriterTest, WhatIsWrittenIsReadBack) {
  const SmallRunResult run = SmallRun();
  Write(run, folder_);
  const Result result = ReadOne(folder_ / "profile_export_aiperf.json");
  EXPECT_TRUE(result.problems.empty()) << result.problems.front();
  for (const auto& [tag, block] : run.cell.metrics) {
    ASSERT_TRUE(result.cell.metrics.contains(tag)) << tag;
    const MetricBlock& read = result.cell.metrics.at(tag);
    EXPECT_EQ(read.unit, block.unit) << tag;
    EXPECT_EQ(read.avg, block.avg) << tag;
    EXPECT_EQ(read.percentiles, block.percentiles) << tag;
    EXPECT_EQ(read.std, block.std) << tag;
    if (block.count) {
      EXPECT_EQ(read.count, block.count) << tag;
    }
  }
  EXPECT_EQ(result.cell.concurrency, 2);
  EXPECT_EQ(result.cell.scenario, "chat");
  EXPECT_EQ(result.cell.environment.at("engine"), "fulgur 0.1.0");
  EXPECT_EQ(result.plan.random_seed, 42);
  EXPECT_EQ(result.plan.token_source, "usage");
  EXPECT_EQ(result.plan.sequence_distribution.size(), 1U);
  EXPECT_NEAR(*result.window_s, 0.381, 1e-9);
  EXPECT_EQ(result.cell.phases.front().wall_start_ns, 1'786'000'000'000'000'000);
  ASSERT_EQ(result.requests.size(), 3U);
  EXPECT_EQ(result.requests[0].metrics.Get("time_to_first_token", 0), 100.0);
  EXPECT_THAT(result.requests[0].metrics.inter_chunk_latency_ms, ::testing::ElementsAre(30, 40));
  EXPECT_EQ(result.requests[2].error->code, 400);
  EXPECT_EQ(result.requests[2].end_ns - result.requests[2].start_ns, 171'000'000);
}

TEST_F(AiperfWriterTest, KeysStandInAiperfsOrder) {
  Write(SmallRun(), folder_);
  const auto json = OrderedJson::parse(ReadText(folder_ / "profile_export_aiperf.json"));
  const auto real =
      OrderedJson::parse(ReadText(kTestData / "real/mixed/profile_export_aiperf.json"));
  std::vector<std::string> ours, theirs;
  for (const auto& [key, value] : json.items()) {
    if (real.contains(key)) ours.push_back(key);
  }
  for (const auto& [key, value] : real.items()) {
    if (json.contains(key)) theirs.push_back(key);
    if (key == "end_time") break;  // what follows stands in any order
  }
  ours.resize(theirs.size());
  EXPECT_EQ(ours, theirs);
  const auto keys_of = [](const OrderedJson& block) {
    std::vector<std::string> keys;
    for (const auto& [key, value] : block.items()) keys.push_back(key);
    return keys;
  };
  for (const char* tag : {"request_latency", "request_count", "inter_chunk_latency"}) {
    EXPECT_EQ(keys_of(json[tag]), keys_of(real[tag])) << tag;
  }
}

// Null and NaN break the parsers of others; a metric without a value has no block.
TEST_F(AiperfWriterTest, NeverWritesNullOrNan) {
  SmallRunResult run = SmallRun();
  run.cell.metrics["odd"] = Scalar(std::nan(""), "ms");
  run.cell.metrics["empty"] = Summarize({}, "ms");
  Write(run, folder_);
  const std::string text = ReadText(folder_ / "profile_export_aiperf.json");
  EXPECT_EQ(text.find("null"), std::string::npos);
  EXPECT_EQ(text.find("nan"), std::string::npos);
  EXPECT_FALSE(OrderedJson::parse(text).contains("empty"));
  EXPECT_EQ(ReadText(folder_ / "profile_export.jsonl").find("null"), std::string::npos);
}

TEST_F(AiperfWriterTest, RunsWithoutASingleSuccessAreWrittenToo) {
  SmallRunResult run = SmallRun();
  run.records = {run.records[2]};
  run.cell.metrics = ComputeRunMetrics(run.records, {5'199'000'000, 5'380'000'000}, {});
  run.cell.errors = GroupErrors(run.records);
  Write(run, folder_);
  const Result result = ReadOne(folder_ / "profile_export_aiperf.json");
  EXPECT_EQ(result.cell.metrics.at("request_count").avg, 0.0);
  EXPECT_FALSE(result.cell.metrics.contains("time_to_first_token"));
  EXPECT_EQ(result.cell.errors.front().count, 1);
}

using Rows = std::vector<std::vector<std::string>>;

Rows Csv(const fs::path& file) {
  auto rows = ParseCsv(ReadText(file), "csv");
  EXPECT_TRUE(rows.ok());
  return rows.ok() ? *rows : Rows();
}

TEST_F(AiperfWriterTest, TheCsvFileHasAiperfsHeadersAndNames) {
  Write(SmallRun(), folder_);
  const Rows ours = Csv(folder_ / "profile_export_aiperf.csv");
  const Rows theirs = Csv(kTestData / "real/mixed/profile_export_aiperf.csv");
  EXPECT_EQ(ours.front(), theirs.front());
  EXPECT_EQ(ours.back(), theirs.back());
  std::map<std::string, size_t> known;
  for (const auto& row : theirs) known[row.front()] = row.size();
  int shared = 0;
  for (const auto& row : ours) {
    if (row.front() == "Metric" || !known.contains(row.front())) continue;
    EXPECT_EQ(row.size(), known[row.front()]) << row.front();
    ++shared;
  }
  EXPECT_GT(shared, 35);
  EXPECT_NE(ReadText(folder_ / "profile_export_aiperf.csv").find("std\r\n"), std::string::npos);
}

TEST_F(AiperfWriterTest, TheDocumentedColumnsAreThoseOfTheFile) {
  Write(SmallRun(), folder_);
  const std::string csv = ReadText(folder_ / "profile_export_aiperf.csv");
  const std::string header = csv.substr(0, csv.find('\r'));
  for (const char* page : {"docs/en/bench_results.md", "docs/zh/bench_results.md"}) {
    EXPECT_THAT(ReadText(page), ::testing::HasSubstr("`" + header + "`")) << page;
  }
}

// Reading a file of aiperf and writing it again gives the same CSV file, number for number.
TEST_F(AiperfWriterTest, ARealCsvFileIsReproduced) {
  Result result = ReadOne(kTestData / "real/mixed/profile_export_aiperf.json");
  std::erase_if(result.cell.metrics,
                [](const auto& entry) { return entry.first.starts_with("fulgur_"); });
  ASSERT_TRUE(WriteAiperfCsv(folder_ / "again.csv", result.cell).ok());
  EXPECT_EQ(ReadText(folder_ / "again.csv"),
            ReadText(kTestData / "real/mixed/profile_export_aiperf.csv"));
}

TEST_F(AiperfWriterTest, InputsAreOneJsonDocument) {
  auto writer = InputsWriter::Open(folder_ / "inputs.json");
  ASSERT_TRUE(writer.ok());
  ASSERT_TRUE(writer->Append("session_000000", {R"({"model":"m"})", R"({"model":"n"})"}).ok());
  ASSERT_TRUE(writer->Append("a \"quoted\" one", {"{}"}).ok());
  ASSERT_TRUE(writer->Close().ok());
  const auto json = OrderedJson::parse(ReadText(folder_ / "inputs.json"));
  ASSERT_EQ(json["data"].size(), 2U);
  EXPECT_EQ(json["data"][0]["payloads"][1]["model"], "n");
  EXPECT_EQ(json["data"][1]["session_id"], "a \"quoted\" one");
}

TEST_F(AiperfWriterTest, NamesTheFileThatCannotBeWritten) {
  const absl::Status status = WriteAiperfCsv("/no/such/folder/x.csv", Cell());
  EXPECT_THAT(Sentence(status), ::testing::HasSubstr("/no/such/folder/x.csv"));
  EXPECT_FALSE(RecordWriter::Open("/no/such/folder/x.jsonl").ok());
}

}  // namespace
}  // namespace fulgur::bench

#include "bench/results/utilisation_log.h"

#include "bench/results/strings.h"
#include "fmt/format.h"
#include "gmock/gmock.h"

namespace fulgur::bench {
namespace {

using ::testing::HasSubstr;

constexpr char kSeedHead[] =
    "# sample-util start tag=dsv4-dspark interval=2s host=node1 date=x\n# cols: epoch ts ai0 hbm0 "
    "ai1 hbm1 cpu "
    "used total\n";

UtilisationLog Parse(const std::string& text) {
  auto log = ParseUtilisationLog(text, "util.log");
  EXPECT_TRUE(log.ok()) << log.status();
  return log.ok() ? *std::move(log) : UtilisationLog();
}

TEST(UtilisationLogTest, ReadsColumns) {
  const UtilisationLog log =
      Parse(std::string(kSeedHead) +
            "1786000000 2026-08-06T15:06:40 83 60342 81 60110 6.7 884736 1031000\n"
            "1786000002 2026-08-06T15:06:42 - NA 91 60110 7.7 884736 1031000\n");
  EXPECT_EQ(log.tag, "dsv4-dspark");
  EXPECT_EQ(log.host, "node1");
  EXPECT_EQ(log.interval_s, 2.0);
  ASSERT_EQ(log.samples.size(), 2U);
  EXPECT_EQ(log.samples[0].devices[1].memory_mb, 60110);
  EXPECT_EQ(log.samples[0].cpu_percent, 6.7);
  EXPECT_EQ(log.samples[0].memory_total_mb, 1031000);
  EXPECT_FALSE(log.samples[1].devices[0].busy_percent.has_value());
  EXPECT_TRUE(log.problems.empty());
}

TEST(UtilisationLogTest, SixteenDiesAreThirtySevenFields) {
  std::string line = "1786000000 t";
  for (int i = 0; i < 16; ++i) line += fmt::format(" {} {}", i, 60000 + i);
  const UtilisationLog log = Parse(line + " 6.7 100 200\n");
  ASSERT_EQ(log.samples[0].devices.size(), 16U);
  EXPECT_EQ(log.samples[0].devices[15].busy_percent, 15);
}

TEST(UtilisationLogTest, BrokenLinesAreCountedNotGuessed) {
  const UtilisationLog log = Parse(
      "1786000000 t 83 60342 81 60110 6.7 884736 1031000\n"
      "1786000002 t 83 60342 6.7 884736 1031000\n"       // a die less
      "1786000004 t 83 60342 81 6.7 884736 1031000\n"    // a field less
      "1786000006 t 83 x 81 60110 6.7 884736 1031000\n"  // no number
      "yesterday t 83 60342 81 60110 6.7 884736 1031000\n"
      "1786000008 t 85 60342 81 60110 6.7 884736 1031000\n"
      "17860000");
  EXPECT_EQ(log.samples.size(), 2U);
  EXPECT_EQ(log.broken_lines, 5);
  EXPECT_FALSE(log.problems.empty());
}

TEST(UtilisationLogTest, AClockThatGoesBackIsTold) {
  const UtilisationLog log =
      Parse("1786000010 t 1 1 5 10 20\n1786000012 t 2 1 5 10 20\n1786000001 t 3 1 5 10 20\n");
  EXPECT_EQ(log.samples.front().wall_ns, 1'786'000'001'000'000'000);
  ASSERT_EQ(log.problems.size(), 1U);
  EXPECT_THAT(log.problems[0], HasSubstr("goes back 1 time"));
}

TEST(UtilisationLogTest, ReadsJsonLines) {
  const UtilisationLog log = Parse(
      R"({"format":"fulgur-util/1","host":"h","tag":"t","interval_ms":1000,"devices":[{"id":0,"kind":"ascend"}]})"
      "\n"
      R"({"t_ns":1786000000000000000,"m_ns":5,"dev":[[50,60000,210.5,44]],"cpu":5,"mem_avail_mb":300,"mem_free_mb":100,"mem_total_mb":1000})"
      "\n"
      R"({"t_ns":1786000001000000000,"m_ns":6,"dev":[[null,60000,null,44]],"cpu":null,"mem_avail_mb":300,"mem_total_mb":1000})"
      "\n{\"end\":{\"ticks\":2}}\nnot json\n");
  EXPECT_EQ(log.device_kind, "ascend");
  ASSERT_EQ(log.samples.size(), 2U);
  EXPECT_EQ(log.samples[0].devices[0].power_w, 210.5);
  EXPECT_EQ(log.samples[0].memory_used_mb, 900);
  EXPECT_FALSE(log.samples[1].devices[0].busy_percent.has_value());
  EXPECT_EQ(log.broken_lines, 1);
}

TEST(UtilisationLogTest, OtherFilesAreRefused) {
  for (const char* text :
       {"", "\n\n", "# only comments\n", "{\"a\": 1}\n", "a,b,c\n1,2,3\n", "\xff\xfe"}) {
    const auto log = ParseUtilisationLog(text, "x.log");
    ASSERT_FALSE(log.ok()) << text;
    EXPECT_THAT(Sentence(log.status()), HasSubstr("x.log is no utilisation log"));
  }
}

TEST(UtilisationSummaryTest, WeighsSamplesByTheirTime) {
  const UtilisationLog log = Parse(
      "# interval=2s\n"
      "1786000000 t 100 10 50 30 1 100 1000\n"
      "1786000002 t 0 10 50 30 3 100 1000\n"
      "1786000003 t 40 20 50 30 5 100 1000\n");
  const UtilisationSummary all = SummarizeUtilisation(log);
  EXPECT_EQ(all.samples, 3);
  EXPECT_EQ(all.devices, 2);
  // Device 0: 2 s at 100, 1 s at 0, 2 s at 40; device 1 always 50.
  ASSERT_EQ(all.device_busy_avg.size(), 2U);
  EXPECT_DOUBLE_EQ(all.device_busy_avg[0], 56.0);
  EXPECT_DOUBLE_EQ(all.device_busy_avg[1], 50.0);
  EXPECT_DOUBLE_EQ(*all.busy_avg, 53.0);
  EXPECT_DOUBLE_EQ(*all.busy_max, 100.0);
  EXPECT_DOUBLE_EQ(*all.idle_share, 0.1);
  EXPECT_DOUBLE_EQ(*all.imbalance, 6.0 / 53.0);
  EXPECT_FALSE(all.power_avg_w.has_value());
  EXPECT_FALSE(all.energy_j.has_value());
  EXPECT_EQ(all.series.size(), 3U);
}

TEST(UtilisationSummaryTest, KeepsToTheWindow) {
  const UtilisationLog log = Parse(
      "1786000000 t 100 10 1 100 1000\n1786000001 t 20 10 1 100 1000\n1786000002 t 30 10 1 100 "
      "1000\n");
  const UtilisationSummary inside =
      SummarizeUtilisation(log, 1'786'000'001'000'000'000, 1'786'000'002'000'000'000);
  EXPECT_EQ(inside.samples, 2);
  EXPECT_DOUBLE_EQ(*inside.busy_avg, 25.0);
  const UtilisationSummary outside = SummarizeUtilisation(log, 0, 1);
  EXPECT_EQ(outside.samples, 0);
  EXPECT_FALSE(outside.busy_avg.has_value());
}

TEST(UtilisationSummaryTest, LongLogsGiveAtMost600Points) {
  std::string text;
  for (int i = 0; i < 2934; ++i)
    text += fmt::format("{} t {} 60000 5 10 20\n", 1786000000 + 2 * i, i % 100);
  const UtilisationSummary summary = SummarizeUtilisation(Parse(text));
  EXPECT_EQ(summary.samples, 2934);
  EXPECT_LE(summary.series.size(), 600U);
  EXPECT_GE(summary.series.size(), 500U);
}

TEST(UtilisationSummaryTest, EnergyIsPowerTimesTime) {
  std::string text = R"({"format":"fulgur-util/1","interval_ms":1000})"
                     "\n";
  for (int i = 0; i < 10; ++i) {
    text += fmt::format(R"({{"t_ns":{},"dev":[[50,1,100,40],[50,1,200,40]]}})"
                        "\n",
                        1'786'000'000'000'000'000 + i * 1'000'000'000LL);
  }
  const UtilisationSummary summary = SummarizeUtilisation(Parse(text));
  EXPECT_NEAR(*summary.power_avg_w, 300, 1e-9);
  EXPECT_NEAR(*summary.energy_j, 3000, 1e-6);
}

TEST(UtilisationLogTest, ReadsDeviceTelemetryOfAiperf) {
  const auto log =
      ReadUtilisationLog("src/bench/results/testdata/real/warmup_gpu/gpu_telemetry_export.jsonl");
  ASSERT_TRUE(log.ok()) << log.status();
  EXPECT_EQ(log->device_kind, "nvidia");
  EXPECT_TRUE(log->problems.empty());
  ASSERT_FALSE(log->samples.empty());
  ASSERT_EQ(log->samples[0].devices.size(), 2U);
  EXPECT_EQ(log->samples[0].wall_ns, 1796053210124733891);
  EXPECT_EQ(log->samples[0].devices[1].busy_percent, 72.639);
  EXPECT_EQ(log->samples[0].devices[1].power_w, 302.639);
  EXPECT_NEAR(*log->samples[0].devices[0].memory_mb, 60001.6, 0.1);
  EXPECT_GT(log->interval_s, 0.0);
}

TEST(UtilisationLogTest, TelemetryOfTwoHostsIsPutTogether) {
  const auto line = [](const char* source, int index, int64_t time, double busy) {
    return fmt::format(R"({{"gpu_index": {}, "telemetry_source_url": "{}", "timestamp_ns": {}, )"
                       R"("telemetry_data": {{"amd_gpu_utilization": {}}}}})"
                       "\n",
                       index, source, time, busy);
  };
  const auto log = ParseUtilisationLog(line("b", 0, 2'000, 30) + line("a", 0, 1'000, 10) +
                                           line("a", 1, 1'000, 20) + "{\"telemetry_data\": {}}\n",
                                       "telemetry");
  ASSERT_TRUE(log.ok()) << log.status();
  EXPECT_EQ(log->broken_lines, 1);
  ASSERT_EQ(log->samples.size(), 2U);
  ASSERT_EQ(log->samples[0].devices.size(), 3U);
  EXPECT_EQ(log->samples[0].devices[1].busy_percent, 20.0);
  EXPECT_FALSE(log->samples[0].devices[2].busy_percent.has_value());
  EXPECT_EQ(log->samples[1].devices[2].busy_percent, 30.0);
}

}  // namespace
}  // namespace fulgur::bench

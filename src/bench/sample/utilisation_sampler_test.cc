#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <iostream>

#include "absl/time/clock.h"
#include "bench/sample/clock_offset.h"
#include "bench/sample/pid_file.h"
#include "bench/sample/sampler.h"
#include "bench/sample/text_scan.h"
#include "bench/sample/tick_schedule.h"
#include "nlohmann/json.hpp"

namespace fulgur::bench {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;
using std::chrono_literals::operator""ms;

class SamplerTest : public testing::Test {
 protected:
  SamplerTest() : folder_(fs::path(testing::TempDir()) / ("sampler_" + std::to_string(getpid()))) {
    fs::remove_all(folder_);
  }
  ~SamplerTest() override { fs::remove_all(folder_); }

  SamplerOptions Options(const std::string& tag) const {
    SamplerOptions options;
    options.tag = tag;
    options.interval = absl::Milliseconds(50);
    options.folder = folder_;
    options.devices = DeviceBackend::kNone;
    return options;
  }
  SamplerOptions WithDevices(const std::string& tag) const {
    SamplerOptions options = Options(tag);
    options.devices = DeviceBackend::kDcmi;
    options.device_library = FAKE_DCMI;
    return options;
  }
  std::vector<Json> NativeLines(const std::string& tag) const {
    std::vector<Json> lines;
    const std::string text = FileText(folder_ / ("util-" + tag + ".jsonl"));
    for (std::string_view line : LinesOf(text)) {
      lines.push_back(Json::parse(line));
    }
    return lines;
  }

  const fs::path folder_;
};

TEST(TickSchedule, DeadlinesDoNotDrift) {
  const TickSchedule::Clock::time_point start{};
  TickSchedule schedule(start, 100ms);
  EXPECT_EQ(schedule.Next(start).at, start + 100ms);
  EXPECT_EQ(schedule.Next(start + 130ms).at, start + 200ms);  // 30 ms late, the next is not
  EXPECT_EQ(schedule.Next(start + 299ms).at, start + 300ms);
}

TEST(TickSchedule, PassedDeadlinesAreSkippedAndCounted) {
  const TickSchedule::Clock::time_point start{};
  TickSchedule schedule(start, 100ms);
  schedule.Next(start);
  const auto next = schedule.Next(start + 450ms);
  EXPECT_EQ(next.at, start + 500ms);
  EXPECT_EQ(next.missed, 3);  // 200, 300 and 400 ms
  EXPECT_EQ(schedule.Next(start + 510ms).missed, 0);
}

TEST_F(SamplerTest, WritesHeaderTicksAndFooter) {
  auto sampler = Sampler::Start(Options("host"));
  ASSERT_TRUE(sampler.ok()) << sampler.status();
  absl::SleepFor(absl::Milliseconds(480));
  const auto summary = (*sampler)->Stop();
  ASSERT_TRUE(summary.ok()) << summary.status();
  const auto lines = NativeLines("host");
  ASSERT_EQ(lines.size(), static_cast<size_t>(summary->num_ticks) + 2);
  EXPECT_EQ(lines[0]["format"], "fulgur-util/1");
  EXPECT_EQ(lines[0]["tag"], "host");
  EXPECT_EQ(lines[0]["interval_ms"], 50);
  EXPECT_EQ(lines[0]["devices"], Json::array());
  EXPECT_GT(lines[0]["cpu_count"], 0);
  int64_t last = 0;
  for (size_t i = 1; i + 1 < lines.size(); ++i) {
    EXPECT_GT(lines[i]["t_ns"].get<int64_t>(), last);
    last = lines[i]["t_ns"];
    EXPECT_GT(lines[i]["mem_used_mb"], 0);
    EXPECT_EQ(lines[i]["dev"], Json::array());
  }
  EXPECT_EQ(lines.back()["end"]["ticks"], summary->num_ticks);
  EXPECT_EQ((*sampler)->Stop()->num_ticks, summary->num_ticks);  // again, without effect
}

TEST_F(SamplerTest, TicksStayOnTheGrid) {
  const absl::Time start = absl::Now();
  auto sampler = Sampler::Start(Options("grid"));
  ASSERT_TRUE(sampler.ok());
  absl::SleepFor(absl::Seconds(2));
  const auto summary = (*sampler)->Stop();
  ASSERT_TRUE(summary.ok());
  // Each tick is as late as this busy machine made it; lateness does not add up.
  const auto lines = NativeLines("grid");
  const int64_t first =
      lines[1]["m_ns"].get<int64_t>() - lines[1]["delay_us"].get<int64_t>() * 1000;
  for (size_t i = 2; i + 2 < lines.size(); ++i) {
    const int64_t deadline =
        lines[i]["m_ns"].get<int64_t>() - lines[i]["delay_us"].get<int64_t>() * 1000;
    const double ticks = static_cast<double>(deadline - first) / 50e6;
    EXPECT_NEAR(ticks, std::round(ticks), 0.02) << i;
  }
  const double due = absl::FDivDuration(absl::Now() - start, absl::Milliseconds(50));
  EXPECT_NEAR(static_cast<double>(summary->num_ticks + summary->num_missed), due, 2);
  std::cout << "mean period " << summary->mean_period_ms << " ms, p99 " << summary->p99_period_ms
            << " ms, missed " << summary->num_missed << std::endl;
}

TEST_F(SamplerTest, CostsAtMostOnePercentOfACoreAtOneSecond) {
  SamplerOptions options = WithDevices("cost");
  options.interval = absl::Milliseconds(10);
  options.format = LogFormat::kBoth;
  auto sampler = Sampler::Start(options);
  ASSERT_TRUE(sampler.ok());
  const auto cpu_seconds = [] {
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    return static_cast<double>(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           static_cast<double>(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
  };
  const double before = cpu_seconds();
  absl::SleepFor(absl::Seconds(2));
  const double spent = cpu_seconds() - before;
  const auto summary = (*sampler)->Stop();
  ASSERT_TRUE(summary.ok());
  const double per_tick_ms = spent * 1e3 / static_cast<double>(summary->num_ticks);
  std::cout << per_tick_ms << " ms of CPU time a tick" << std::endl;
  EXPECT_LT(per_tick_ms, 10);
}

TEST_F(SamplerTest, DevicesInBothFormats) {
  SamplerOptions options = WithDevices("npu");
  options.format = LogFormat::kBoth;
  auto sampler = Sampler::Start(options);
  ASSERT_TRUE(sampler.ok()) << sampler.status();
  absl::SleepFor(absl::Milliseconds(300));
  const auto summary = (*sampler)->Stop();
  ASSERT_TRUE(summary.ok());
  EXPECT_EQ(summary->device_source, "dcmi");
  EXPECT_EQ(summary->num_devices, 4);
  const auto lines = NativeLines("npu");
  EXPECT_EQ(lines[0]["devices"][2]["card"], 1);
  EXPECT_EQ(lines[0]["devices"][2]["mem_total_mb"], 65536);
  const Json& tick = lines[lines.size() - 2];
  EXPECT_EQ(tick["dev"][0], Json({50, 3000, 182, 36}));
  EXPECT_EQ(tick["dev"][1], Json({51, 3100, nullptr, 36}));
  EXPECT_EQ(tick["dev"][3], Json({nullptr, nullptr, nullptr, nullptr}));
  EXPECT_GE(tick["late_us"], 0);
  EXPECT_GT(*summary->device_energy_j, 0);

  const std::string seed = FileText(folder_ / "util-npu.log");
  EXPECT_TRUE(seed.starts_with("# sample-util start tag=npu interval=0.05s host=")) << seed;
  const auto seed_lines = LinesOf(seed);
  EXPECT_EQ(seed_lines[1],
            "# cols: epoch ts ai0 hbm0 ai1 hbm1 ai2 hbm2 ai3 hbm3 cpu_busy% mem_used_mb "
            "mem_total_mb");
  const auto words = WordsOf(seed_lines[seed_lines.size() - 2]);
  ASSERT_EQ(words.size(), 5U + 2 * 4);
  EXPECT_EQ(words[2], "50");
  EXPECT_EQ(words[3], "3000");
  EXPECT_EQ(words[8], "-");  // the broken chip
  EXPECT_TRUE(seed_lines.back().starts_with("# end ticks="));
}

TEST_F(SamplerTest, EnergyIsPowerOverTime) {
  const absl::Time start = absl::Now();
  auto sampler = Sampler::Start(WithDevices("energy"));
  ASSERT_TRUE(sampler.ok());
  absl::SleepFor(absl::Seconds(1));
  const auto summary = (*sampler)->Stop();
  ASSERT_TRUE(summary.ok());
  // 182.0 W + 182.1 W; the first tick may come before the first reading.
  const double seconds = absl::ToDoubleSeconds(absl::Now() - start);
  EXPECT_NEAR(*summary->device_energy_j, 364.1 * seconds, 60);
}

TEST_F(SamplerTest, WhatItRefuses) {
  SamplerOptions options = Options("../evil");
  EXPECT_TRUE(absl::IsInvalidArgument(Sampler::Start(options).status()));
  options = Options("ok");
  options.interval = absl::Milliseconds(1);
  EXPECT_TRUE(absl::IsInvalidArgument(Sampler::Start(options).status()));
  options = Options("ok");
  options.format = LogFormat::kSeed;
  EXPECT_TRUE(absl::IsFailedPrecondition(Sampler::Start(options).status()));
  options = Options("ok");
  options.process = 999'999'999;
  EXPECT_TRUE(absl::IsNotFound(Sampler::Start(options).status()));
  options = Options("ok");
  options.devices = DeviceBackend::kDcmi;
  options.device_library = "/nowhere.so";
  EXPECT_TRUE(absl::IsNotFound(Sampler::Start(options).status()));
  EXPECT_FALSE(fs::exists(folder_ / "util-ok.jsonl"));
}

TEST_F(SamplerTest, AnExistingLogIsNotTouchedUnlessAsked) {
  ASSERT_TRUE(Sampler::Start(Options("twice")).ok());
  const std::string before = FileText(folder_ / "util-twice.jsonl");
  EXPECT_TRUE(absl::IsAlreadyExists(Sampler::Start(Options("twice")).status()));
  EXPECT_EQ(FileText(folder_ / "util-twice.jsonl"), before);
  SamplerOptions more = Options("twice");
  more.append = true;
  ASSERT_TRUE(Sampler::Start(more).ok());
  EXPECT_TRUE(FileText(folder_ / "util-twice.jsonl").starts_with(before));
}

TEST_F(SamplerTest, ADiskThatIsFullIsSaid) {
  fs::create_directories(folder_);
  fs::create_symlink("/dev/full", folder_ / "util-full.jsonl");
  SamplerOptions options = Options("full");
  options.append = true;
  auto sampler = Sampler::Start(options);
  ASSERT_TRUE(sampler.ok());
  const auto summary = (*sampler)->Stop();
  EXPECT_TRUE(absl::IsResourceExhausted(summary.status())) << summary.status();
}

TEST_F(SamplerTest, PidFileStopsExactlyItsProcess) {
  fs::create_directories(folder_);
  const fs::path path = SamplePidPath(folder_, "p");
  EXPECT_TRUE(absl::IsNotFound(StopProcessOf(path, absl::Seconds(1)).status()));
  const pid_t child = fork();
  if (child == 0) {
    const auto file = PidFile::Create(path);
    if (!file.ok()) _exit(3);
    pause();
    _exit(0);
  }
  while (FileText(path).find('\n') == std::string::npos) absl::SleepFor(absl::Milliseconds(5));
  EXPECT_TRUE(absl::IsAlreadyExists(PidFile::Create(path).status()));
  const auto stopped = StopProcessOf(path, absl::Seconds(10));
  ASSERT_TRUE(stopped.ok()) << stopped.status();
  EXPECT_EQ(*stopped, child);
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(WTERMSIG(status), SIGTERM);
  // The killed child left its file behind: stale, so it neither stops anybody nor stands in the
  // way.
  EXPECT_TRUE(absl::IsNotFound(StopProcessOf(path, absl::Seconds(1)).status()));
  // The same number with another start time is another process.
  std::ofstream(path) << getpid() << " 1 0000\n";
  EXPECT_TRUE(absl::IsNotFound(StopProcessOf(path, absl::Seconds(1)).status()));
  { EXPECT_TRUE(PidFile::Create(path).ok()); }
  EXPECT_FALSE(fs::exists(path));
}

TEST(ClockOffset, TheShortestRoundTripWins) {
  // The other clock is 5000 ahead; answers take 100 + 40 on the second question, far longer and
  // lopsided on others.
  int64_t time = 0;
  int question = 0;
  const auto ask = [&]() -> absl::StatusOr<int64_t> {
    const bool short_trip = ++question == 2;
    time += short_trip ? 70 : 900;
    const int64_t answer = time + 5000;
    time += short_trip ? 70 : 10;
    return answer;
  };
  const auto offset = MeasureClockOffset(ask, [&] { return time; });
  ASSERT_TRUE(offset.ok());
  EXPECT_EQ(offset->offset_ns, 5000);
  EXPECT_EQ(offset->uncertainty_ns, 70);
  EXPECT_EQ(offset->num_answers, 20);
  const auto dead = [] { return absl::StatusOr<int64_t>(absl::UnavailableError("gone")); };
  EXPECT_TRUE(absl::IsUnavailable(MeasureClockOffset(dead, [] { return 0; }).status()));
}

TEST(ClockOffset, IsNotedInTheLogsFirstLine) {
  const ClockOffset offset{-12, 5, 20};
  const std::string native =
      WithClockOffset("{\"format\":\"fulgur-util/1\"}\n{\"t_ns\":1}\n", offset);
  const Json header = Json::parse(native.substr(0, native.find('\n')));
  EXPECT_EQ(header["clock_offset_ns"], -12);
  EXPECT_TRUE(native.ends_with("\n{\"t_ns\":1}\n"));
  EXPECT_EQ(WithClockOffset("# sample-util\n1 2\n", offset),
            "# clock offset_ns=-12 uncertainty_ns=5\n# sample-util\n1 2\n");
  EXPECT_EQ(WithClockOffset("garbage", offset), "garbage");
}

}  // namespace
}  // namespace fulgur::bench

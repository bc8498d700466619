// The drivers' libraries through dlopen and the vendors' tools as child processes.
#include "bench/sample/device_source.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "absl/time/clock.h"
#include "bench/sample/child_process.h"
#include "bench/sample/device_poller.h"
#include "bench/sample/text_scan.h"

namespace fulgur::bench {
namespace {

namespace fs = std::filesystem;

// A folder with tools of our own, first in PATH.
class FakeTools {
 public:
  FakeTools() : folder_(fs::path(testing::TempDir()) / ("tools_" + std::to_string(getpid()))) {
    fs::remove_all(folder_);
    fs::create_directories(folder_);
    old_path_ = getenv("PATH");
    setenv("PATH", (folder_.string() + ":" + old_path_).c_str(), 1);
  }
  ~FakeTools() {
    setenv("PATH", old_path_.c_str(), 1);
    fs::remove_all(folder_);
  }
  void Add(const std::string& name, const std::string& script) const {
    std::ofstream(folder_ / name) << "#!/bin/sh\n" << script;
    chmod((folder_ / name).c_str(), 0755);
  }
  std::string path(const std::string& name) const { return folder_ / name; }

 private:
  const fs::path folder_;
  std::string old_path_;
};

std::string Fixture(const std::string& name) {
  return fs::absolute("src/bench/sample/testdata/" + name).string();
}

TEST(Dcmi, ReadsEveryChipOfEveryCard) {
  const auto source = OpenDcmi(FAKE_DCMI);
  ASSERT_TRUE(source.ok()) << source.status();
  const auto& devices = (*source)->devices();
  ASSERT_EQ(devices.size(), 4U);
  EXPECT_EQ(devices[3].card, 1);
  EXPECT_EQ(devices[3].chip, 1);
  EXPECT_EQ(devices[2].physical, 10);
  EXPECT_EQ(devices[0].name, "Ascend910");
  EXPECT_EQ(devices[0].memory_total_mb, 65536);
  const auto readings = (*source)->Read();
  ASSERT_TRUE(readings.ok());
  EXPECT_EQ((*readings)[0].utilisation_percent, 50);
  EXPECT_EQ((*readings)[2].utilisation_percent, 60);
  EXPECT_EQ((*readings)[1].memory_used_mb, 3100);
  EXPECT_EQ((*readings)[2].power_w, 182.1);
  EXPECT_EQ((*readings)[1].power_w, std::nullopt);
  EXPECT_EQ((*readings)[2].temperature_c, 37);
  EXPECT_EQ((*readings)[3].utilisation_percent, std::nullopt);  // unreadable, the rest goes on
  EXPECT_EQ((*readings)[3].memory_used_mb, std::nullopt);
}

TEST(Nvml, ReadsPowerAndEnergyWhereTheyExist) {
  const auto source = OpenNvml(FAKE_NVML);
  ASSERT_TRUE(source.ok()) << source.status();
  ASSERT_EQ((*source)->devices().size(), 2U);
  EXPECT_EQ((*source)->devices()[0].memory_total_mb, 141 * 1024);
  EXPECT_EQ((*source)->devices()[1].name, "NVIDIA H200");
  const auto readings = (*source)->Read();
  ASSERT_TRUE(readings.ok());
  EXPECT_EQ((*readings)[0].utilisation_percent, 40);
  EXPECT_EQ((*readings)[0].memory_used_mb, 41 * 1024);
  EXPECT_EQ((*readings)[0].power_w, 312.5);
  EXPECT_EQ((*readings)[0].energy_j, 1000);
  EXPECT_EQ((*readings)[0].temperature_c, 61);
  EXPECT_EQ((*readings)[1].power_w, std::nullopt);
  EXPECT_EQ((*readings)[1].utilisation_percent, 41);
}

TEST(Drivers, AMissingOrForeignLibraryIsAnErrorThatNamesIt) {
  const auto missing = OpenDcmi("/nowhere/libdcmi.so");
  EXPECT_TRUE(absl::IsNotFound(missing.status()));
  EXPECT_NE(missing.status().message().find("/nowhere/libdcmi.so"), std::string::npos);
  EXPECT_TRUE(absl::IsNotFound(OpenDcmi(FAKE_NVML).status()));
  EXPECT_TRUE(absl::IsNotFound(OpenNvml(FAKE_DCMI).status()));
}

TEST(NpuSmi, RunsTheToolForEachReading) {
  const FakeTools tools;
  tools.Add("npu-smi", "cat " + Fixture("npu_smi_a3.txt"));
  const auto source = OpenNpuSmi();
  ASSERT_TRUE(source.ok()) << source.status();
  EXPECT_EQ((*source)->devices().size(), 4U);
  tools.Add("npu-smi", "sed -e 's/83 /55 /' " + Fixture("npu_smi_a3.txt"));
  auto readings = (*source)->Read();
  ASSERT_TRUE(readings.ok());
  EXPECT_EQ((*readings)[0].utilisation_percent, 55);
  tools.Add("npu-smi", "echo DrvMngGetConsoleLogLevel failed; exit 1");
  readings = (*source)->Read();
  ASSERT_TRUE(readings.ok());
  EXPECT_EQ((*readings)[0].utilisation_percent, std::nullopt);
}

// Prints its rounds only to a terminal, as tools do that hold back what goes into a pipe.
constexpr char kWatchScript[] = R"sh(
if [ "$2" != watch ]; then cat %s; exit; fi
[ -t 1 ] || exit 1
echo "NpuID(Idx)  ChipId(Idx) Pwr(W)      Temp(C)     AI Core(%%)  Memory(%%)"
round=0
while :; do
  round=$((round + 1))
  for npu in 0 1; do for chip in 0 1; do
    echo "$npu $chip 90.5 34 $round $((50 + npu))"
  done; done
  sleep 0.05
done
)sh";

TEST(NpuSmiWatch, FollowsOneLongLivedChild) {
  const FakeTools tools;
  char script[1024];
  snprintf(script, sizeof(script), kWatchScript, Fixture("npu_smi_a3.txt").c_str());
  tools.Add("npu-smi", script);
  const auto source = OpenNpuSmiWatch();
  ASSERT_TRUE(source.ok()) << source.status();
  const auto first = (*source)->Read();
  const auto second = (*source)->Read();
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_EQ(*(*second)[3].utilisation_percent, *(*first)[3].utilisation_percent + 1);
  EXPECT_DOUBLE_EQ(*(*second)[0].memory_used_mb, 0.50 * 65536);
  EXPECT_DOUBLE_EQ(*(*second)[2].memory_used_mb, 0.51 * 65536);
  EXPECT_EQ((*second)[0].power_w, 90.5);
}

TEST(NpuSmiWatch, AToolWithoutWatchIsAnError) {
  const FakeTools tools;
  tools.Add("npu-smi", "[ \"$2\" = watch ] && { echo 'Error parameter of watch'; exit 1; }\ncat " +
                           Fixture("npu_smi_a3.txt"));
  EXPECT_FALSE(OpenNpuSmiWatch().ok());
  const auto source = OpenDeviceSource(DeviceBackend::kAuto, "");
  ASSERT_TRUE(source.ok());
  ASSERT_NE(*source, nullptr);
  EXPECT_EQ((*source)->name(), "npu-smi");
}

TEST(NvidiaSmi, FollowsOneLongLivedChild) {
  const FakeTools tools;
  tools.Add("nvidia-smi", R"sh(
line() { echo "$1, GPU-$1, $2, 100, 200, [N/A], 50, T4"; }
case "$*" in *"-l 1"*) ;; *) line 0 1; line 1 2; exit ;; esac
while :; do line 0 10; line 1 20; sleep 0.05; done
)sh");
  const auto source = OpenNvidiaSmi();
  ASSERT_TRUE(source.ok()) << source.status();
  const auto readings = (*source)->Read();
  ASSERT_TRUE(readings.ok());
  ASSERT_EQ(readings->size(), 2U);
  EXPECT_EQ((*readings)[1].utilisation_percent, 20);
  EXPECT_EQ((*readings)[1].power_w, std::nullopt);
}

TEST(ChildProcess, EndsWithItsOwner) {
  const FakeTools tools;
  tools.Add("forever", "echo $$; exec sleep 1000");
  std::string pid;
  {
    const auto child = ChildProcess::Start({tools.path("forever")});
    ASSERT_TRUE(child.ok());
    pid = *(*child)->ReadLine(absl::Seconds(10));
  }
  EXPECT_FALSE(fs::exists("/proc/" + pid)) << pid;
}

TEST(ChildProcess, SaysWhatIsMissingAndWhatIsSlow) {
  EXPECT_TRUE(absl::IsNotFound(ChildProcess::Start({"no-such-tool"}).status()));
  const FakeTools tools;
  tools.Add("slow", "sleep 1000");
  EXPECT_TRUE(
      absl::IsDeadlineExceeded(OutputOf({tools.path("slow")}, absl::Milliseconds(200)).status()));
}

// A driver that needs longer than an interval.
class SlowSource : public DeviceSource {
 public:
  std::string name() const override { return "slow"; }
  const std::vector<SampledDevice>& devices() const override { return devices_; }
  absl::StatusOr<std::vector<DeviceReading>> Read() override {
    absl::SleepFor(absl::Milliseconds(60));
    DeviceReading reading;
    reading.utilisation_percent = ++reads_;
    return std::vector{reading};
  }

 private:
  const std::vector<SampledDevice> devices_{SampledDevice{}};
  int reads_ = 0;
};

TEST(DevicePoller, KeepsTheNewestOfASlowDriver) {
  const auto start = DevicePoller::Clock::now();
  DevicePoller poller(std::make_unique<SlowSource>(), start, std::chrono::milliseconds(20));
  EXPECT_FALSE(poller.newest());
  absl::SleepFor(absl::Milliseconds(500));
  const auto values = poller.newest();
  ASSERT_TRUE(values);
  EXPECT_GE(values->readings[0].utilisation_percent, 3);
}

}  // namespace
}  // namespace fulgur::bench

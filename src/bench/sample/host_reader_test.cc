#include "bench/sample/host_reader.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <ctime>
#include <fstream>

#include "bench/sample/text_scan.h"

namespace fulgur::bench {
namespace {

namespace fs = std::filesystem;

// A small /proc and /sys whose numbers the test sets.
class FakeHost {
 public:
  FakeHost() : root_(fs::path(testing::TempDir()) / ("fake_host_" + std::to_string(getpid()))) {
    fs::remove_all(root_);
  }
  ~FakeHost() { fs::remove_all(root_); }

  void Write(const std::string& path, const std::string& text) const {
    fs::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text;
  }
  HostPaths paths() const { return {root_ / "proc", root_ / "sys"}; }

 private:
  const fs::path root_;
};

TEST(ProcStat, BusyIsWhatIsNotIdleOrWaiting) {
  const auto before = ParseProcStat(
      "cpu  100 0 100 800 0 0 0 0 50 0\ncpu0 50 0 50 400 0 0 0 0 0 0\ncpu7 50 0 50 400 0 0 0 0\n"
      "intr 1 2 3\n");
  const auto after = ParseProcStat(
      "cpu  160 0 120 900 20 0 0 0 50 0\ncpu0 90 0 60 405 0 0 0 0 0 0\ncpu7 70 0 60 495 20 0 0 "
      "0\n");
  ASSERT_TRUE(before && after);
  EXPECT_DOUBLE_EQ(*BusyPercent(before->all, after->all), 40);
  EXPECT_EQ(before->cores.count(7), 1U);
  EXPECT_FALSE(BusyPercent(before->all, before->all));
}

TEST(ProcStat, IoWaitThatRunsBackwardsDoesNotMakeMoreThanEverythingBusy) {
  const auto busy = BusyPercent({1000, 900}, {1010, 880});
  ASSERT_TRUE(busy);
  EXPECT_LE(*busy, 100);
}

TEST(ProcStat, BrokenTextIsAbsent) {
  EXPECT_FALSE(ParseProcStat(""));
  EXPECT_FALSE(ParseProcStat("cpu a b c\n"));
  EXPECT_FALSE(ParseProcessStat("1 (sh) S"));
}

TEST(ProcessStat, NamesMayHoldBracketsAndSpaces) {
  const auto stat = ParseProcessStat(
      "77 (a) b (c) S 12 77 77 0 -1 4194304 1 0 0 0 30 12 0 0 20 0 1 0 98765 1 1 1");
  ASSERT_TRUE(stat);
  EXPECT_EQ(stat->parent, 12);
  EXPECT_EQ(stat->cpu_jiffies, 42);
  EXPECT_EQ(stat->start_jiffies, 98765);
}

TEST(HostReader, MemoryThatCanBeHadIsNotUsed) {
  const FakeHost fake;
  fake.Write("proc/meminfo",
             "MemTotal: 1048576 kB\nMemFree: 102400 kB\nMemAvailable: 614400 kB\nBuffers: 1024 kB\n"
             "Cached: 524288 kB\nSReclaimable: 2048 kB\nShmem: 1024 kB\nSwapTotal: 2048 kB\n"
             "SwapFree: 1024 kB\n");
  HostReader reader(fake.paths(), std::nullopt, {});
  const HostReading host = reader.Read(absl::Seconds(1));
  EXPECT_EQ(host.memory_total_mb, 1024);
  EXPECT_EQ(host.memory_used_mb, 424);
  EXPECT_EQ(host.memory_free_mb, 100);
  EXPECT_EQ(host.buffers_and_cache_mb, 514);
  EXPECT_EQ(host.swap_used_mb, 1);
  EXPECT_EQ(host.cpu_percent, std::nullopt);
}

TEST(HostReader, NetworkCardsCountBridgesDoNot) {
  const FakeHost fake;
  const auto net = [&](int eth_rx, int eth_tx) {
    fake.Write("proc/net/dev",
               "Inter-| Receive | Transmit\n face |bytes\n    lo: 9 1 0 0 0 0 0 0 9 1 0 0 0 0 0 0\n"
               "  eth0:" +
                   std::to_string(eth_rx) + " 1 0 0 0 0 0 0 " + std::to_string(eth_tx) +
                   " 1 0 0 0 0 0 0\ndocker0: 777 1 0 0 0 0 0 0 777 1 0 0 0 0 0 0\n");
  };
  fake.Write("sys/class/net/eth0/device/vendor", "1");
  fake.Write("sys/class/net/docker0/mtu", "1500");
  net(1000, 100);
  HostReader reader(fake.paths(), std::nullopt, {});
  net(5000, 300);
  const HostReading host = reader.Read(absl::Seconds(2));
  EXPECT_EQ(host.net_rx_bytes_per_s, 2000);
  EXPECT_EQ(host.net_tx_bytes_per_s, 100);
  net(10, 10);  // the card was reset
  EXPECT_EQ(reader.Read(absl::Seconds(2)).net_rx_bytes_per_s, std::nullopt);
}

TEST(HostReader, RdmaCountsInWords) {
  const FakeHost fake;
  const std::string counters = "sys/class/infiniband/mlx5_0/ports/1/counters/";
  fake.Write(counters + "port_rcv_data", "1000\n");
  fake.Write(counters + "port_xmit_data", "0\n");
  HostReader reader(fake.paths(), std::nullopt, {});
  fake.Write(counters + "port_rcv_data", "3000\n");
  EXPECT_EQ(reader.Read(absl::Seconds(1)).rdma_rx_bytes_per_s, 8000);
}

TEST(HostReader, EnergyCounterStartsOver) {
  const FakeHost fake;
  const std::string zone = "sys/class/powercap/intel-rapl:0/";
  fake.Write(zone + "max_energy_range_uj", "262143328850\n");
  fake.Write(zone + "energy_uj", "262143000000\n");
  fake.Write("sys/class/powercap/intel-rapl:0:0/energy_uj", "5\n");  // a part of the package
  HostReader reader(fake.paths(), std::nullopt, {});
  fake.Write(zone + "energy_uj", "99671150\n");
  const HostReading host = reader.Read(absl::Seconds(2));
  ASSERT_TRUE(host.power_w);
  EXPECT_NEAR(*host.power_w, 50, 1e-6);
  EXPECT_NEAR(*reader.energy_j(), 100, 1e-6);
}

TEST(HostReader, OwnControlGroup) {
  const FakeHost fake;
  fake.Write("proc/self/cgroup", "0::/system.slice/vllm.service\n");
  const std::string group = "sys/fs/cgroup/system.slice/vllm.service/";
  fake.Write(group + "cpu.stat", "usage_usec 1000000\nuser_usec 1\n");
  fake.Write(group + "memory.current", "104857600\n");
  HostReader reader(fake.paths(), std::nullopt, {});
  fake.Write(group + "cpu.stat", "usage_usec 4000000\nuser_usec 1\n");
  const HostReading host = reader.Read(absl::Seconds(2));
  EXPECT_EQ(host.cgroup_cpu_percent, 150);
  EXPECT_EQ(host.cgroup_memory_mb, 100);
}

TEST(HostReader, AProcessAndItsDescendants) {
  const FakeHost fake;
  const auto process = [&](int pid, int parent, int jiffies) {
    const std::string name = std::to_string(pid);
    fake.Write("proc/" + name + "/stat", name + " (x) S " + std::to_string(parent) +
                                             " 1 1 0 -1 0 0 0 0 0 " + std::to_string(jiffies) +
                                             " 0 0 0 20 0 1 0 5 1 1");
    fake.Write("proc/" + name + "/smaps_rollup", "Rss: 9999 kB\nPss:   2048 kB\nPss_Anon: 1 kB\n");
  };
  process(10, 1, 100);
  process(11, 10, 100);
  process(12, 11, 100);
  process(99, 1, 100);
  HostReader reader(fake.paths(), 10, {});
  process(11, 10, 150);
  process(12, 11, 150);
  process(99, 1, 5000);
  const HostReading host = reader.Read(absl::Seconds(1));
  EXPECT_EQ(host.process_cpu_percent, 100.0 * 100 / static_cast<double>(sysconf(_SC_CLK_TCK)));
  EXPECT_EQ(host.process_pss_mb, 6);
}

TEST(HostReader, ThisMachine) {
  HostReader reader({}, getpid(), {});
  EXPECT_GT(reader.num_cpus(), 0);
  // Work that must show up in the process's own share, however busy the machine is.
  const auto cpu_seconds = [] { return static_cast<double>(clock()) / CLOCKS_PER_SEC; };
  const auto start = std::chrono::steady_clock::now();
  const double cpu_start = cpu_seconds();
  volatile uint64_t sum = 0;
  while (cpu_seconds() < cpu_start + 0.3) sum = sum + 1;
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
  const HostReading host = reader.Read(absl::Seconds(elapsed.count()));
  ASSERT_TRUE(host.cpu_percent && host.memory_total_mb && host.process_cpu_percent);
  EXPECT_GT(*host.cpu_percent, 0);
  EXPECT_LE(*host.cpu_percent, 100);
  EXPECT_GE(*host.cpu_max_core_percent, *host.cpu_percent);
  EXPECT_GT(*host.memory_used_mb, 0);
  EXPECT_LT(*host.memory_used_mb, *host.memory_total_mb);
  const double expected = 100 * 0.3 / elapsed.count();  // of one core
  EXPECT_NEAR(*host.process_cpu_percent, expected, 0.3 * expected);
  EXPECT_GT(host.process_pss_mb.value_or(0), 0);
  EXPECT_TRUE(host.load1);
}

}  // namespace
}  // namespace fulgur::bench

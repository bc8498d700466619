// Reads the host: CPU, memory, network, energy, a control group and a process with its children.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "bench/sample/host_text.h"
#include "bench/sample/sample_tick.h"

namespace fulgur::bench {

struct HostPaths {
  std::filesystem::path proc = "/proc";
  std::filesystem::path sys = "/sys";
};

// Not thread-safe. Rates and shares are between two calls of Read(); the first call has none.
class HostReader {
 public:
  HostReader(HostPaths paths, std::optional<pid_t> process, std::filesystem::path cgroup);

  HostReading Read(absl::Duration since_last);

  int num_cpus() const { return num_cpus_; }
  std::optional<double> energy_j() const { return energy_j_; }  // CPU packages, since construction

 private:
  struct EnergyZone {
    std::filesystem::path counter;
    uint64_t range = 0;  // µJ at which the counter starts over
    std::optional<uint64_t> last;
  };

  // A counter that only grows, as a rate; none at first or after a reset.
  class Rate {
   public:
    std::optional<double> Next(std::optional<double> value, double seconds);

   private:
    std::optional<double> last_;
  };

  void FindEnergyZones();
  void FindNetworkCards();
  void ReadCpu(HostReading& host);
  void ReadMemory(HostReading& host);
  void ReadNetwork(HostReading& host, double seconds);
  void ReadRdma(HostReading& host, double seconds);
  void ReadEnergy(HostReading& host, double seconds);
  void ReadCgroup(HostReading& host, double seconds);
  void ReadProcess(HostReading& host, double seconds);
  void FindProcesses();

  const HostPaths paths_;
  const std::optional<pid_t> process_;
  std::filesystem::path cgroup_;
  int num_cpus_ = 0;

  std::optional<CpuTable> cpu_;
  std::vector<std::string> network_cards_;  // empty: all but the loopback
  std::vector<std::filesystem::path> rdma_counters_;
  std::vector<EnergyZone> energy_zones_;
  std::optional<double> energy_j_;
  Rate net_rx_, net_tx_, rdma_rx_, rdma_tx_, cgroup_cpu_;

  // Finding children and adding up their memory walks many files: every few seconds.
  std::vector<pid_t> processes_;
  std::map<pid_t, int64_t> process_jiffies_;
  std::optional<double> process_pss_mb_;
  absl::Duration since_found_ = absl::InfiniteDuration();
};

}  // namespace fulgur::bench

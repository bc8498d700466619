// What the sampler sees at one tick: accelerators and the host. Absent values are unknown, never 0.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace fulgur::bench {

// One accelerator chip (a die, where a card has two).
struct SampledDevice {
  int id = 0;        // running number
  std::string kind;  // "ascend" or "nvidia"
  std::optional<int> card;
  std::optional<int> chip;
  std::optional<int> physical;  // the driver's own number
  std::string bus;              // PCI address, empty if unknown
  std::string name;
  std::optional<double> memory_total_mb;
};

struct DeviceReading {
  std::optional<double> utilisation_percent;  // busy share in the driver's own window
  std::optional<double> memory_used_mb;
  std::optional<double> power_w;
  std::optional<double> temperature_c;
  std::optional<double> energy_j;  // the driver's counter, from an unknown start
};

// Rates are over the time since the tick before.
struct HostReading {
  std::optional<double> cpu_percent;           // of all cores
  std::optional<double> cpu_max_core_percent;  // the busiest core
  std::optional<double> memory_used_mb;        // total - available
  std::optional<double> memory_available_mb;
  std::optional<double> memory_free_mb;
  std::optional<double> memory_total_mb;
  std::optional<double> buffers_and_cache_mb;
  std::optional<double> swap_used_mb;
  std::optional<double> net_rx_bytes_per_s;  // all network cards
  std::optional<double> net_tx_bytes_per_s;
  std::optional<double> rdma_rx_bytes_per_s;  // all InfiniBand and RoCE ports
  std::optional<double> rdma_tx_bytes_per_s;
  std::optional<double> load1;
  std::optional<double> power_w;             // CPU packages
  std::optional<double> cgroup_cpu_percent;  // of one core
  std::optional<double> cgroup_memory_mb;
  std::optional<double> process_cpu_percent;  // of one core; the watched process and its children
  std::optional<double> process_pss_mb;
};

struct SampleTick {
  int64_t wall_ns = 0;       // CLOCK_REALTIME
  int64_t monotonic_ns = 0;  // CLOCK_MONOTONIC
  int64_t delay_us = 0;      // how long after its deadline the tick was taken
  int64_t missed = 0;        // deadlines skipped just before this one
  std::optional<int64_t> device_age_us;
  std::vector<DeviceReading> devices;  // one for each device of the log, in order
  HostReading host;
};

}  // namespace fulgur::bench

// What devices and host did while a benchmark ran: samples of a utilisation log and their summary.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace fulgur::bench {

struct DeviceSample {
  std::optional<double> busy_percent;  // AICore on Ascend
  std::optional<double> memory_mb;
  std::optional<double> power_w;
  std::optional<double> temperature_c;
};

struct UtilisationSample {
  int64_t wall_ns = 0;
  std::vector<DeviceSample> devices;
  std::optional<double> cpu_percent;
  std::optional<double> cpu_max_core_percent;
  std::optional<double> memory_used_mb;  // total - free: counts the page cache
  std::optional<double> memory_available_mb;
  std::optional<double> memory_total_mb;
};

struct UtilisationLog {
  std::string tag;
  std::string host;
  double interval_s = 0.0;                 // the promised one
  std::string device_kind;                 // "ascend", "nvidia"; empty if the log does not say
  std::vector<UtilisationSample> samples;  // by time
  int64_t broken_lines = 0;                // skipped
  std::vector<std::string> problems;       // clocks that jump, mixed device counts
};

// Down-sampled for a chart: means over buckets.
struct UtilisationPoint {
  double seconds = 0.0;  // from the first sample
  std::optional<double> busy_mean, busy_min_device, busy_max_device, cpu_percent, memory_mb;
};

struct UtilisationSummary {
  int64_t wall_start_ns = 0;
  int64_t wall_end_ns = 0;
  int64_t samples = 0;
  int32_t devices = 0;
  std::optional<double> busy_avg, busy_p50, busy_p95, busy_max;  // percent, over devices and ticks
  std::optional<double> idle_share;     // of device ticks below 5 %, 0 to 1
  std::optional<double> imbalance;      // (max - min) / mean of the devices' means
  std::vector<double> device_busy_avg;  // by device
  std::optional<double> device_memory_avg_mb, device_memory_max_mb;
  std::optional<double> cpu_avg_percent, cpu_max_core_percent;
  std::optional<double> host_memory_used_mb;            // means; used = total - free
  std::optional<double> host_memory_unavailable_mb;     // total - available
  std::optional<double> power_avg_w, energy_j;          // all devices together
  std::optional<double> joules_per_output_token;        // of a cell only
  std::optional<double> tokens_per_busy_device_second;  // of a cell only
  std::vector<UtilisationPoint> series;                 // of a whole log only, at most 600
};

}  // namespace fulgur::bench

// The utilisation sampler: accelerators and host at fixed ticks, written to a log as they are read.
//
// Deadlines are start + k * interval on the monotonic clock, so the period does not drift. A missed
// deadline is skipped, counted and said. Accelerators are read by a thread of their own: a slow
// driver makes values older, not ticks later; values older than three intervals are left out.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "bench/sample/sample_tick.h"

namespace fulgur::bench {

enum class LogFormat {
  kNative,  // util-TAG.jsonl
  kSeed,    // util-TAG.log: columns epoch, time, busy and memory per device, CPU, memory
  kBoth,
};

// Where accelerators are read. kAuto takes the first that works, in this order, or none.
enum class DeviceBackend { kAuto, kNone, kDcmi, kNpuSmiWatch, kNpuSmi, kNvml, kNvidiaSmi };

// The one of that name: "native", "seed", "both".
absl::StatusOr<LogFormat> ParseLogFormat(std::string_view name);
// "auto", "none", "dcmi", "npu-smi-watch", "npu-smi", "nvml", "nvidia-smi".
absl::StatusOr<DeviceBackend> ParseDeviceBackend(std::string_view name);

struct SamplerOptions {
  std::string tag = "run";                     // letters, digits, '.', '_', '-'
  absl::Duration interval = absl::Seconds(1);  // at least 10 ms
  std::filesystem::path folder = ".";
  LogFormat format = LogFormat::kNative;
  DeviceBackend devices = DeviceBackend::kAuto;
  std::string device_library;    // DCMI or NVML, where it is in no usual place
  bool append = false;           // go on in an existing log; otherwise one is an error
  std::optional<pid_t> process;  // also watch this process and its children
  std::filesystem::path cgroup;  // also watch this control group; empty: the own one
  std::filesystem::path proc = "/proc";
  std::filesystem::path sys = "/sys";
};

struct SamplerSummary {
  std::vector<std::filesystem::path> files;
  std::string device_source;  // "dcmi", "npu-smi watch" ... or "none"
  int64_t num_devices = 0;
  int64_t num_ticks = 0;
  int64_t num_missed = 0;
  double mean_period_ms = 0;
  double p99_period_ms = 0;
  std::optional<double> device_energy_j;  // all devices, while the sampler ran
  std::optional<double> host_energy_j;    // CPU packages
};

// The file a tag's log is in. `format` is kNative or kSeed.
std::filesystem::path SampleLogPath(const std::filesystem::path& folder, std::string_view tag,
                                    LogFormat format);

// Whether a tag is fit for a file name.
bool IsValidSampleTag(std::string_view tag);

class Sampler {
 public:
  virtual ~Sampler() = default;  // stops if Stop() was not called

  // Opens the log, finds the devices and starts the ticks; the first one comes after one interval.
  // Errors: a bad tag or interval, a log that exists, a backend that does not work, the seed format
  // without devices (it has no place for a host alone).
  static absl::StatusOr<std::unique_ptr<Sampler>> Start(const SamplerOptions& options);

  // Writes the last tick and the footer. Idempotent. Callable from any thread, as is everything.
  virtual absl::StatusOr<SamplerSummary> Stop() = 0;

  // What was sampled so far.
  virtual SamplerSummary summary() const = 0;
  virtual const std::vector<SampledDevice>& devices() const = 0;
  virtual std::optional<SampleTick> last_tick() const = 0;
};

}  // namespace fulgur::bench

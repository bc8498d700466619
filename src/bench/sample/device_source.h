// Where accelerator values come from: a driver library loaded at run time, or a vendor's tool.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "bench/sample/sample_tick.h"
#include "bench/sample/sampler.h"

namespace fulgur::bench {

// Used by one thread, except Cancel().
class DeviceSource {
 public:
  virtual ~DeviceSource() = default;

  virtual std::string name() const = 0;
  virtual const std::vector<SampledDevice>& devices() const = 0;

  // Newest values, one for each device in order; takes as long as driver or tool need. A device
  // that cannot be read has absent values. After an error another call may succeed: a tool that
  // ended is started again.
  virtual absl::StatusOr<std::vector<DeviceReading>> Read() = 0;

  // True if Read() itself waits for the tool's next round.
  virtual bool has_own_pace() const { return false; }

  // Makes a Read() that waits return soon. Callable from any thread.
  virtual void Cancel() {}
};

using DeviceSourceOrError = absl::StatusOr<std::unique_ptr<DeviceSource>>;

// Each is NOT_FOUND where library, tool or devices are missing. `library` is a path, or empty for
// the usual places.
DeviceSourceOrError OpenDcmi(const std::string& library);  // Ascend: libdcmi.so
DeviceSourceOrError OpenNvml(const std::string& library);  // NVIDIA: libnvidia-ml.so.1
DeviceSourceOrError OpenNpuSmiWatch();                     // `npu-smi info watch`, one child
DeviceSourceOrError OpenNpuSmi();                          // `npu-smi info`, once per reading
DeviceSourceOrError OpenNvidiaSmi();                       // `nvidia-smi -l 1`, one child

// The source for a backend; null for kNone, and for kAuto where there is no accelerator.
DeviceSourceOrError OpenDeviceSource(DeviceBackend backend, const std::string& library);

}  // namespace fulgur::bench

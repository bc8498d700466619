// NVIDIA's management library, NVML. The few functions used are declared here, after its reference
// manual.
#include <array>
#include <utility>

#include "base/status_macros.h"
#include "bench/sample/device_source.h"
#include "bench/sample/driver_library.h"

namespace fulgur::bench {
namespace {

using Handle = void*;

struct Utilization {
  unsigned int gpu;
  unsigned int memory;
};

struct Memory {
  unsigned long long total;
  unsigned long long free;
  unsigned long long used;
};

constexpr double kBytesPerMb = 1 << 20;
constexpr unsigned int kGpuTemperature = 0;  // nvmlTemperatureSensors_t

struct Functions {
  int (*init)();
  int (*count)(unsigned int*);
  int (*handle)(unsigned int, Handle*);
  int (*name)(Handle, char*, unsigned int);
  int (*utilization)(Handle, Utilization*);
  int (*memory)(Handle, Memory*);
  int (*power)(Handle, unsigned int*);         // mW
  int (*energy)(Handle, unsigned long long*);  // mJ
  int (*temperature)(Handle, unsigned int, unsigned int*);
};

absl::StatusOr<Functions> Load(const DriverLibrary& library) {
  Functions f{};
  f.init = library.Find<int()>("nvmlInit_v2");
  f.count = library.Find<int(unsigned int*)>("nvmlDeviceGetCount_v2");
  f.handle = library.Find<int(unsigned int, Handle*)>("nvmlDeviceGetHandleByIndex_v2");
  f.name = library.Find<int(Handle, char*, unsigned int)>("nvmlDeviceGetName");
  f.utilization = library.Find<int(Handle, Utilization*)>("nvmlDeviceGetUtilizationRates");
  f.memory = library.Find<int(Handle, Memory*)>("nvmlDeviceGetMemoryInfo");
  f.power = library.Find<int(Handle, unsigned int*)>("nvmlDeviceGetPowerUsage");
  f.energy = library.Find<int(Handle, unsigned long long*)>("nvmlDeviceGetTotalEnergyConsumption");
  f.temperature =
      library.Find<int(Handle, unsigned int, unsigned int*)>("nvmlDeviceGetTemperature");
  if (f.init == nullptr || f.count == nullptr || f.handle == nullptr || f.utilization == nullptr ||
      f.memory == nullptr) {
    return absl::NotFoundError("libnvidia-ml.so.1 lacks the functions that list and read devices");
  }
  return f;
}

class NvmlSource : public DeviceSource {
 public:
  explicit NvmlSource(const Functions& functions) : f_(functions) {}

  absl::Status Enumerate() {
    if (const int code = f_.init(); code != 0) {
      return absl::NotFoundError(fmt::format("nvmlInit_v2 failed with code {}", code));
    }
    unsigned int count = 0;
    if (const int code = f_.count(&count); code != 0) {
      return absl::NotFoundError(fmt::format("nvmlDeviceGetCount_v2 failed with code {}", code));
    }
    for (unsigned int i = 0; i < count; ++i) Add(i);
    if (devices_.empty()) return absl::NotFoundError("NVML lists no device");
    return absl::OkStatus();
  }

  std::string name() const override { return "nvml"; }
  const std::vector<SampledDevice>& devices() const override { return devices_; }

  absl::StatusOr<std::vector<DeviceReading>> Read() override {
    std::vector<DeviceReading> readings;
    for (Handle handle : handles_) readings.push_back(ReadOne(handle));
    return readings;
  }

 private:
  void Add(unsigned int index) {
    Handle handle = nullptr;
    if (f_.handle(index, &handle) != 0) return;
    SampledDevice device;
    device.id = static_cast<int>(index);
    device.kind = "nvidia";
    device.physical = device.id;
    std::array<char, 96> name{};
    if (f_.name != nullptr && f_.name(handle, name.data(), name.size() - 1) == 0) {
      device.name = name.data();
    }
    if (Memory memory{}; f_.memory(handle, &memory) == 0) {
      device.memory_total_mb = static_cast<double>(memory.total) / kBytesPerMb;
    }
    devices_.push_back(std::move(device));
    handles_.push_back(handle);
  }

  DeviceReading ReadOne(Handle handle) const {
    DeviceReading reading;
    if (Utilization rates{}; f_.utilization(handle, &rates) == 0) {
      reading.utilisation_percent = rates.gpu;
    }
    if (Memory memory{}; f_.memory(handle, &memory) == 0) {
      reading.memory_used_mb = static_cast<double>(memory.used) / kBytesPerMb;
    }
    if (unsigned int power = 0; f_.power != nullptr && f_.power(handle, &power) == 0) {
      reading.power_w = power / 1000.0;
    }
    if (unsigned long long energy = 0; f_.energy != nullptr && f_.energy(handle, &energy) == 0) {
      reading.energy_j = static_cast<double>(energy) / 1000.0;
    }
    unsigned int degrees = 0;
    if (f_.temperature != nullptr && f_.temperature(handle, kGpuTemperature, &degrees) == 0) {
      reading.temperature_c = degrees;
    }
    return reading;
  }

  const Functions f_;
  std::vector<SampledDevice> devices_;
  std::vector<Handle> handles_;
};

}  // namespace

DeviceSourceOrError OpenNvml(const std::string& library) {
  const std::vector<std::string> usual = {"libnvidia-ml.so.1"};
  ASSIGN_OR_RETURN(const DriverLibrary driver,
                   DriverLibrary::Open(library.empty() ? usual : std::vector{library}));
  ASSIGN_OR_RETURN(const Functions functions, Load(driver));
  auto source = std::make_unique<NvmlSource>(functions);
  RETURN_IF_ERROR(source->Enumerate());
  return source;
}

}  // namespace fulgur::bench

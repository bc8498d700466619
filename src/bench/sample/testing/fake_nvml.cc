// An NVML with two GPUs; the second knows neither power nor energy. Energy grows by 500 J a call.
#include <cstring>

extern "C" {

struct nvmlUtilization_t {
  unsigned int gpu;
  unsigned int memory;
};

struct nvmlMemory_t {
  unsigned long long total;
  unsigned long long free;
  unsigned long long used;
};

static int devices[2] = {0, 1};
static unsigned long long energy_mj = 1000000;
constexpr int kNotSupported = 3;

int nvmlInit_v2() { return 0; }

int nvmlDeviceGetCount_v2(unsigned int* count) {
  *count = 2;
  return 0;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned int index, void** handle) {
  *handle = &devices[index];
  return 0;
}

int nvmlDeviceGetName(void*, char* name, unsigned int length) {
  std::strncpy(name, "NVIDIA H200", length);
  return 0;
}

int nvmlDeviceGetUtilizationRates(void* device, nvmlUtilization_t* rates) {
  *rates = {static_cast<unsigned int>(40 + *static_cast<int*>(device)), 12};
  return 0;
}

int nvmlDeviceGetMemoryInfo(void*, nvmlMemory_t* memory) {
  *memory = {141ULL << 30, 100ULL << 30, 41ULL << 30};
  return 0;
}

int nvmlDeviceGetPowerUsage(void* device, unsigned int* milliwatts) {
  if (*static_cast<int*>(device) == 1) return kNotSupported;
  *milliwatts = 312500;
  return 0;
}

int nvmlDeviceGetTotalEnergyConsumption(void* device, unsigned long long* millijoules) {
  if (*static_cast<int*>(device) == 1) return kNotSupported;
  *millijoules = energy_mj;
  energy_mj += 500000;
  return 0;
}

int nvmlDeviceGetTemperature(void*, unsigned int, unsigned int* degrees) {
  *degrees = 61;
  return 0;
}

}  // extern "C"

#include "base/machine.h"

#include <cpuid.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <limits>
#include <optional>
#include <sstream>

#include "fmt/format.h"

namespace fulgur::base {
namespace {

constexpr int64_t kUnlimited = std::numeric_limits<int64_t>::max();

bool CpuidBit(uint32_t leaf, uint32_t subleaf, char reg, int bit) {
  uint32_t a = 0, b = 0, c = 0, d = 0;
  if (__get_cpuid_count(leaf, subleaf, &a, &b, &c, &d) == 0) return false;
  const uint32_t value = reg == 'a' ? a : reg == 'b' ? b : reg == 'c' ? c : d;
  return ((value >> bit) & 1U) != 0;
}

// Linux grants the 8 kB tile state per process on request (Documentation/x86/xstate.rst).
bool RequestTilePermission() {
  constexpr long kArchReqXcompPerm = 0x1023;
  constexpr long kXfeatureXtiledata = 18;
  return syscall(SYS_arch_prctl, kArchReqXcompPerm, kXfeatureXtiledata) == 0;
}

IsaFeatures DetectIsa() {
  IsaFeatures isa;
  __builtin_cpu_init();
  isa.avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  isa.avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
               __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") &&
               __builtin_cpu_supports("avx512vbmi") && __builtin_cpu_supports("avx512vnni");
  isa.avx512_bf16 = isa.avx512 && CpuidBit(7, 1, 'a', 5);
  if (isa.avx512 && CpuidBit(7, 0, 'd', 24) && RequestTilePermission()) {
    isa.amx_int8 = CpuidBit(7, 0, 'd', 25);
    isa.amx_bf16 = CpuidBit(7, 0, 'd', 22);
  }
  return isa;
}

std::string ReadFirstLine(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

// The value in bytes of a "Name:  123 kB" line of /proc/meminfo; 0 if it is not there.
int64_t MemInfo(const std::string& name) {
  std::ifstream file("/proc/meminfo");
  for (std::string line; std::getline(file, line);) {
    if (line.rfind(name + ":", 0) == 0) return std::stoll(line.substr(name.size() + 1)) * 1024;
  }
  return 0;
}

std::string CpuName() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (line.rfind("model name", 0) == 0) return line.substr(line.find(':') + 2);
  }
  return "unknown CPU";
}

std::optional<int64_t> ReadNumber(const std::string& path) {
  std::istringstream line(ReadFirstLine(path));
  int64_t value = 0;
  if (line >> value) return value;
  return std::nullopt;  // absent, or "max"
}

// Memory limit and present use of this container (cgroup v2, then v1).
int64_t CgroupMemoryLimit() {
  const auto v2 = ReadNumber("/sys/fs/cgroup/memory.max");
  return v2 ? *v2 : ReadNumber("/sys/fs/cgroup/memory/memory.limit_in_bytes").value_or(kUnlimited);
}

int64_t CgroupMemoryUse() {
  const auto v2 = ReadNumber("/sys/fs/cgroup/memory.current");
  return v2 ? *v2 : ReadNumber("/sys/fs/cgroup/memory/memory.usage_in_bytes").value_or(0);
}

// Whole cores of the container's CPU quota, at least one; a large number without a quota.
int CgroupCores() {
  std::istringstream v2(ReadFirstLine("/sys/fs/cgroup/cpu.max"));
  int64_t quota = 0, period = 0;
  if (!(v2 >> quota >> period)) {
    quota = ReadNumber("/sys/fs/cgroup/cpu/cpu.cfs_quota_us").value_or(-1);
    period = ReadNumber("/sys/fs/cgroup/cpu/cpu.cfs_period_us").value_or(0);
  }
  if (quota <= 0 || period <= 0) return std::numeric_limits<int>::max();
  return static_cast<int>(std::max<int64_t>(1, quota / period));
}

int AffinityCores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof(set), &set) != 0) return 1;
  return std::max(1, CPU_COUNT(&set));
}

}  // namespace

Machine DetectMachine() {
  Machine machine;
  machine.isa = DetectIsa();
  machine.cpu_name = CpuName();
  machine.usable_cores = std::min(AffinityCores(), CgroupCores());
  const int64_t limit = CgroupMemoryLimit();
  machine.memory_bytes = std::min(MemInfo("MemTotal"), limit);
  machine.available_bytes = MemInfo("MemAvailable");
  if (limit != kUnlimited) {
    machine.available_bytes =
        std::min(machine.available_bytes, std::max<int64_t>(0, limit - CgroupMemoryUse()));
  }
  return machine;
}

std::string DescribeMachine(const Machine& machine) {
  std::string text = fmt::format("{}, {} {}, {:.1f} GB memory ({:.1f} free),", machine.cpu_name,
                                 machine.usable_cores, machine.usable_cores == 1 ? "core" : "cores",
                                 static_cast<double>(machine.memory_bytes) / 1e9,
                                 static_cast<double>(machine.available_bytes) / 1e9);
  if (machine.isa.avx2) text += " avx2";
  if (machine.isa.avx512) text += " avx512-vnni";
  if (machine.isa.avx512_bf16) text += " avx512-bf16";
  if (machine.isa.amx_int8) text += " amx-int8";
  if (machine.isa.amx_bf16) text += " amx-bf16";
  return text;
}

}  // namespace fulgur::base

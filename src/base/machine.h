// What this machine is and what this process may use of it: instruction sets, cores, memory.
#pragma once

#include <cstdint>
#include <string>

namespace fulgur::base {

// Instruction sets that some kernel table needs. True only if both CPU and operating system support
// it.
struct IsaFeatures {
  bool avx2 = false;         // with FMA
  bool avx512 = false;       // F, BW, VL, DQ, VBMI, VNNI: what Ice Lake and Zen 4 have in common
  bool avx512_bf16 = false;  // VDPBF16PS
  bool amx_int8 = false;     // tiles, permission from the kernel granted
  bool amx_bf16 = false;
};

struct Machine {
  IsaFeatures isa;
  std::string cpu_name;
  int usable_cores = 1;         // affinity mask and the container's CPU quota respected
  int64_t memory_bytes = 0;     // the smaller of physical memory and the container's limit
  int64_t available_bytes = 0;  // what can still be allocated now without swapping
};

// Reads /proc, the cgroup files and CPUID. Cheap; never fails: unknown values are conservative.
Machine DetectMachine();

// One line for the log, such as "AMD EPYC, 2 cores, 24.0 GB memory (22.1 free), avx2 avx512 bf16".
std::string DescribeMachine(const Machine& machine);

}  // namespace fulgur::base

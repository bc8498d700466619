// What the machine can do at this moment: the roofs that kernels are measured against. On a shared
// machine they change by the second, so a probe runs right beside every sample.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace fulgur::bench_kernels {

// Seconds that this thread has run: unlike a clock, it stands still while others have the core.
double Now();

// Memory on huge pages, as weights have it, filled with something. Owned.
class HugeMemory {
 public:
  explicit HugeMemory(int64_t bytes);
  ~HugeMemory();
  HugeMemory(const HugeMemory&) = delete;
  HugeMemory& operator=(const HugeMemory&) = delete;

  std::byte* data() const { return data_.data(); }

 private:
  std::span<std::byte> data_;
};

// Seconds to read `bytes` bytes once with plain 512-bit loads.
double ReadSeconds(const std::byte* data, int64_t bytes);

// Multiplications and additions per second of one core, from registers: 2 per product.
double Int8PeakOps();
double Bf16PeakOps();

}  // namespace fulgur::bench_kernels

// Feeds arbitrary bytes to the safetensors reader and touches every byte that it hands out.
#include <cstddef>
#include <cstdint>

#include "base/check.h"
#include "io/safetensors.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::span<const std::byte> file(reinterpret_cast<const std::byte*>(data), size);
  const auto tensors = fulgur::io::ParseSafetensors(file, "fuzz");
  if (!tensors.ok()) return 0;
  size_t covered = 0;
  unsigned sum = 0;
  for (const fulgur::io::TensorView& tensor : *tensors) {
    covered += tensor.bytes.size();
    for (const std::byte byte : tensor.bytes) sum += static_cast<unsigned>(byte);
  }
  CHECK_LE(covered, size);
  return sum == 1U ? -1 : 0;
}

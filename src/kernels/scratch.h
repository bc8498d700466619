// Memory that a worker reuses from op to op: grows on first use, then never allocates again.
#pragma once

#include <cstddef>
#include <cstdint>

namespace fulgur::kernels {

// Uses that are live at the same time.
enum class ScratchUse {
  kRowsF32,
  kRowsBf16,
  kRowsInt8,
  kRow,
  kDecodedPanel,
  kTile,
  kSecondTile,
  kGate,
  kAttention,
  kWideRows,
  kIndexQuery,
  kSelected,
  kCount
};

// Aborts with `what` if a promise of the caller is broken. Here, because inline checks would leave
// copies of themselves in files with instruction-set flags.
void Require(bool holds, const char* what);

// At least `bytes` bytes of the calling thread, at a 64-byte boundary; contents are unspecified.
std::byte* Scratch(ScratchUse use, int64_t bytes);

}  // namespace fulgur::kernels

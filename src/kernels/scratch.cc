#include "kernels/scratch.h"

#include <array>

#include "base/check.h"
#include "tensor/buffer.h"

namespace fulgur::kernels {

void Require(bool holds, const char* what) {
  if (!holds) base::FailCheck(__FILE__, __LINE__, what);
}

std::byte* Scratch(ScratchUse use, int64_t bytes) {
  thread_local std::array<tensor::Buffer<std::byte>, static_cast<size_t>(ScratchUse::kCount)>
      buffers;
  tensor::Buffer<std::byte>& buffer = buffers[static_cast<size_t>(use)];
  if (buffer.size() < bytes) buffer = tensor::Buffer<std::byte>(bytes);
  return buffer.data();
}

}  // namespace fulgur::kernels

#include "kernels/avx512/scratch.h"

#include <array>

#include "tensor/buffer.h"

namespace fulgur::kernels::avx512 {

std::byte* Scratch(ScratchUse use, int64_t bytes) {
  thread_local std::array<tensor::Buffer<std::byte>, static_cast<size_t>(ScratchUse::kCount)>
      buffers;
  tensor::Buffer<std::byte>& buffer = buffers[static_cast<size_t>(use)];
  if (buffer.size() < bytes) buffer = tensor::Buffer<std::byte>(bytes);
  return buffer.data();
}

}  // namespace fulgur::kernels::avx512

// Owning, cache-line aligned storage, and views into it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <span>
#include <type_traits>

namespace fulgur::tensor {

inline constexpr std::size_t kAlignment = 64;

// `size` trivially copyable elements at a 64-byte boundary, zeroed. Move-only.
template <typename T>
class Buffer {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  Buffer() = default;
  explicit Buffer(int64_t size) : size_(size), data_(Allocate(size)) {}

  T* data() { return data_.get(); }
  const T* data() const { return data_.get(); }
  int64_t size() const { return size_; }
  int64_t size_bytes() const { return size_ * static_cast<int64_t>(sizeof(T)); }
  T& operator[](int64_t i) { return data_.get()[i]; }
  const T& operator[](int64_t i) const { return data_.get()[i]; }
  std::span<T> span() { return {data_.get(), static_cast<std::size_t>(size_)}; }
  std::span<const T> span() const { return {data_.get(), static_cast<std::size_t>(size_)}; }

 private:
  struct Free {
    void operator()(T* p) const { ::operator delete[](p, std::align_val_t(kAlignment)); }
  };

  static std::unique_ptr<T[], Free> Allocate(int64_t size) {
    void* raw =
        ::operator new[](static_cast<std::size_t>(size) * sizeof(T), std::align_val_t(kAlignment));
    __builtin_memset(raw, 0, static_cast<std::size_t>(size) * sizeof(T));
    return std::unique_ptr<T[], Free>(static_cast<T*>(raw));
  }

  int64_t size_ = 0;
  std::unique_ptr<T[], Free> data_;
};

// A row-major matrix that somebody else owns; `stride` elements from one row to the next.
template <typename T>
struct MatrixView {
  T* data = nullptr;
  int64_t rows = 0;
  int64_t cols = 0;
  int64_t stride = 0;

  T* row(int64_t r) const { return data + r * stride; }
};

}  // namespace fulgur::tensor

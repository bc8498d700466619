#include "kv/store.h"

#include <sys/mman.h>

#include <cstring>
#include <utility>

#include "absl/strings/str_format.h"
#include "base/status_macros.h"

namespace fulgur::kv {

absl::StatusOr<MappedMemory> MappedMemory::Create(int64_t bytes) {
  MappedMemory memory;
  if (bytes == 0) return memory;
  const auto size = static_cast<size_t>(bytes);
  void* address = mmap(nullptr, size, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (address == MAP_FAILED) {
    return absl::ResourceExhaustedError(absl::StrFormat(
        "the system refused %d bytes for the KV cache; use a smaller --kv-cache-memory-bytes",
        bytes));
  }
  madvise(address, size, MADV_HUGEPAGE);  // only a hint: rows are kilobytes, pages megabytes
  memory.data_ = static_cast<std::byte*>(address);
  memory.size_ = bytes;
  return memory;
}

MappedMemory::MappedMemory(MappedMemory&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

MappedMemory& MappedMemory::operator=(MappedMemory&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

MappedMemory::~MappedMemory() {
  if (data_ != nullptr) munmap(data_, static_cast<size_t>(size_));
}

absl::StatusOr<Store> Store::Create(Layout layout, int64_t num_pages, int64_t num_slots) {
  Store store(std::move(layout), num_pages, num_slots);
  ASSIGN_OR_RETURN(store.pages_, MappedMemory::Create(num_pages * store.layout_.page_bytes()));
  ASSIGN_OR_RETURN(store.slots_, MappedMemory::Create(num_slots * store.layout_.slot_bytes()));
  return store;
}

void Store::CopyPage(int32_t from, int32_t to) const {
  std::memcpy(page(to), page(from), static_cast<size_t>(layout_.page_bytes()));
}

void Store::CopySlot(int32_t from, int32_t to) const {
  std::memcpy(slot(to), slot(from), static_cast<size_t>(layout_.slot_bytes()));
}

}  // namespace fulgur::kv

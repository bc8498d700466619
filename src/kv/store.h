// The memory of all sequences: an array of pages and an array of state slots, placed by a Layout.
//
// Knows no owner and no free list: PagePool counts pages. The memory is reserved at once and backed
// by the system when first touched, so an idle server stays small.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include "absl/status/statusor.h"
#include "kv/layout.h"

namespace fulgur::kv {

// Zeroed anonymous memory, unmapped on destruction. Move-only.
class MappedMemory {
 public:
  // kResourceExhausted if the system refuses.
  static absl::StatusOr<MappedMemory> Create(int64_t bytes);
  MappedMemory() = default;
  MappedMemory(MappedMemory&& other) noexcept;
  MappedMemory& operator=(MappedMemory&& other) noexcept;
  ~MappedMemory();

  std::byte* data() const { return data_; }
  int64_t size() const { return size_; }

 private:
  std::byte* data_ = nullptr;
  int64_t size_ = 0;
};

// Writers of different slots and pages need no lock; reuse needs no clearing, since no row is read
// before its position was written.
class Store {
 public:
  static absl::StatusOr<Store> Create(Layout layout, int64_t num_pages, int64_t num_slots);

  const Layout& layout() const { return layout_; }
  int64_t num_pages() const { return num_pages_; }
  int64_t num_slots() const { return num_slots_; }
  int64_t size_bytes() const { return pages_.size() + slots_.size(); }

  std::byte* page(int32_t id) const { return pages_.data() + id * layout_.page_bytes(); }
  std::byte* slot(int32_t id) const { return slots_.data() + id * layout_.slot_bytes(); }

  // Copy-on-write of a shared page; restart points.
  void CopyPage(int32_t from, int32_t to) const;
  void CopySlot(int32_t from, int32_t to) const;

 private:
  Store(Layout layout, int64_t num_pages, int64_t num_slots)
      : layout_(std::move(layout)), num_pages_(num_pages), num_slots_(num_slots) {}

  Layout layout_;
  int64_t num_pages_ = 0;
  int64_t num_slots_ = 0;
  MappedMemory pages_;
  MappedMemory slots_;
};

}  // namespace fulgur::kv

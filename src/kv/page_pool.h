// Who uses which page and which state slot: reference counts and free lists, no memory.
//
// Not thread-safe: the engine's thread owns both. Ids are handed out deterministically, the most
// recently freed first.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace fulgur::kv {

using PageId = int32_t;
using SlotId = int32_t;

class PagePool {
 public:
  explicit PagePool(int64_t num_pages);

  // A free page with one reference, or nothing.
  std::optional<PageId> Allocate();
  void AddReference(PageId page);  // of a page in use
  void Release(PageId page);       // drops one reference; the last one frees the page

  int64_t num_pages() const { return static_cast<int64_t>(references_.size()); }
  int64_t num_free() const { return static_cast<int64_t>(free_.size()); }
  int64_t num_used() const { return num_pages() - num_free(); }
  int32_t references(PageId page) const { return references_[static_cast<size_t>(page)]; }

  // Aborts unless each page is either free or referenced. For tests: linear.
  void CheckInvariants() const;

 private:
  std::vector<int32_t> references_;  // [page]; 0: free
  std::vector<PageId> free_;         // the last one is handed out next
};

// Slots have one owner each.
class SlotPool {
 public:
  explicit SlotPool(int64_t num_slots) : pool_(num_slots) {}

  std::optional<SlotId> Allocate() { return pool_.Allocate(); }
  void Release(SlotId slot) { pool_.Release(slot); }
  int64_t num_slots() const { return pool_.num_pages(); }
  int64_t num_used() const { return pool_.num_used(); }
  void CheckInvariants() const { pool_.CheckInvariants(); }

 private:
  PagePool pool_;
};

}  // namespace fulgur::kv

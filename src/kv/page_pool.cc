#include "kv/page_pool.h"

#include "base/check.h"

namespace fulgur::kv {

PagePool::PagePool(int64_t num_pages) : references_(static_cast<size_t>(num_pages), 0) {
  free_.reserve(references_.size());
  for (auto page = static_cast<PageId>(num_pages); page-- > 0;) free_.push_back(page);
}

std::optional<PageId> PagePool::Allocate() {
  if (free_.empty()) return std::nullopt;
  const PageId page = free_.back();
  free_.pop_back();
  references_[static_cast<size_t>(page)] = 1;
  return page;
}

void PagePool::AddReference(PageId page) {
  CHECK_GT(references(page), 0);
  ++references_[static_cast<size_t>(page)];
}

void PagePool::Release(PageId page) {
  CHECK_GT(references(page), 0);
  if (--references_[static_cast<size_t>(page)] == 0) free_.push_back(page);
}

void PagePool::CheckInvariants() const {
  std::vector<bool> listed(references_.size(), false);
  for (const PageId page : free_) {
    CHECK(!listed[static_cast<size_t>(page)]);
    listed[static_cast<size_t>(page)] = true;
  }
  for (size_t page = 0; page < references_.size(); ++page) {
    CHECK_GE(references_[page], 0);
    CHECK_EQ(listed[page], references_[page] == 0);
  }
}

}  // namespace fulgur::kv

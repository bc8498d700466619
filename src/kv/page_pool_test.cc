#include "kv/page_pool.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>

namespace fulgur::kv {
namespace {

TEST(PagePool, HandsOutEachPageOnce) {
  PagePool pool(3);
  EXPECT_EQ(pool.num_pages(), 3);
  std::set<PageId> pages;
  for (int i = 0; i < 3; ++i) pages.insert(*pool.Allocate());
  EXPECT_EQ(pages, (std::set<PageId>{0, 1, 2}));
  EXPECT_EQ(pool.Allocate(), std::nullopt);
  EXPECT_EQ(pool.num_used(), 3);
  pool.Release(1);
  EXPECT_EQ(pool.Allocate(), 1);
}

TEST(PagePool, TheLastReferenceFrees) {
  PagePool pool(1);
  const PageId page = *pool.Allocate();
  pool.AddReference(page);
  pool.Release(page);
  EXPECT_EQ(pool.num_free(), 0);
  pool.Release(page);
  EXPECT_EQ(pool.num_free(), 1);
}

TEST(PagePool, MisuseAborts) {
  PagePool pool(2);
  EXPECT_DEATH(pool.Release(0), "broken invariant");
  EXPECT_DEATH(pool.AddReference(1), "broken invariant");
}

TEST(PagePool, AgreesWithAModelUnderRandomUse) {
  constexpr int kPages = 20;
  std::mt19937 rng(77);
  PagePool pool(kPages);
  std::map<PageId, int> model;
  for (int step = 0; step < 20000; ++step) {
    const auto action = rng() % 3;
    if (action == 0) {
      const auto page = pool.Allocate();
      ASSERT_EQ(page.has_value(), model.size() < kPages);
      if (page) {
        ASSERT_TRUE(model.emplace(*page, 1).second);
      }
    } else if (!model.empty()) {
      auto entry = model.begin();
      std::advance(entry, rng() % model.size());
      if (action == 1 && entry->second < 4) {
        pool.AddReference(entry->first);
        ++entry->second;
      } else {
        pool.Release(entry->first);
        if (--entry->second == 0) model.erase(entry);
      }
    }
    ASSERT_EQ(pool.num_used(), static_cast<int64_t>(model.size()));
    for (const auto& [page, count] : model) ASSERT_EQ(pool.references(page), count);
    pool.CheckInvariants();
  }
}

TEST(SlotPool, CountsItsOwners) {
  SlotPool pool(2);
  const SlotId a = *pool.Allocate();
  const SlotId b = *pool.Allocate();
  EXPECT_NE(a, b);
  EXPECT_EQ(pool.Allocate(), std::nullopt);
  pool.Release(a);
  EXPECT_EQ(pool.num_used(), 1);
  EXPECT_EQ(pool.Allocate(), a);
}

}  // namespace
}  // namespace fulgur::kv

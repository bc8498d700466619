#include "kv/layout.h"

#include <gtest/gtest.h>

#include <cstring>

#include "kv/store.h"

namespace fulgur::kv {
namespace {

// The published shape of DeepSeek-V4-Flash: 2 layers without compression, 21 of ratio 4, 20 of 128.
LayoutParams Flash() {
  LayoutParams params;
  params.head_dim = 512;
  params.index_head_dim = 128;
  params.sliding_window = 128;
  params.ratios = {0, 0};
  for (int i = 0; i < 41; ++i) params.ratios.push_back(i % 2 == 0 ? 4 : 128);
  return params;
}

TEST(Layout, PageOfFlash) {
  const Layout layout(Flash());
  const int64_t ratio4 = 64 * (512 * 2 + 128 + 4);
  const int64_t ratio128 = 2 * 512 * 2;
  EXPECT_EQ(layout.page_bytes(), 21 * ratio4 + 20 * ratio128);
}

TEST(Layout, SlotOfFlash) {
  const Layout layout(Flash());
  const int64_t windows = 43 * 128 * 512 * 2;
  const int64_t states = 21 * (64 + 16) * 1024 + 20 * 512 * 1024;
  EXPECT_EQ(layout.slot_bytes(), windows + states);
}

TEST(Layout, LookaheadLengthensEveryRing) {
  LayoutParams params = Flash();
  params.lookahead = 5;
  const Layout layout(params);
  EXPECT_EQ(layout.window_rows(), 133);
  EXPECT_EQ(layout.layer(2).compressor.rows, 13);
  EXPECT_EQ(layout.layer(2).index_compressor.rows, 13);
  EXPECT_EQ(layout.layer(3).compressor.rows, 133);
}

TEST(Layout, PartsDoNotOverlap) {
  LayoutParams params;
  params.ratios = {0, 4, 128, 4};
  params.head_dim = 24;
  params.index_head_dim = 12;
  params.sliding_window = 7;
  params.row_format = kernels::RowFormat::kF32;
  params.key_format = kernels::RowFormat::kF32;
  const Layout layout(params);
  EXPECT_EQ(layout.layer(1).rows_offset, 0);
  EXPECT_EQ(layout.layer(1).keys_offset, 64 * 24 * 4);
  EXPECT_EQ(layout.layer(2).rows_offset, layout.layer(1).keys_offset + 64 * 12 * 4);
  EXPECT_EQ(layout.layer(3).rows_offset, layout.layer(2).rows_offset + 192);  // 2 rows
  EXPECT_FALSE(layout.layer(2).has_indexer());
  EXPECT_TRUE(layout.layer(3).has_indexer());
}

TEST(Store, PagesAndSlotsAreApart) {
  auto store = Store::Create(Layout(Flash()), 3, 2);
  ASSERT_TRUE(store.ok());
  const Layout& layout = store->layout();
  std::memset(store->page(1), 1, static_cast<size_t>(layout.page_bytes()));
  EXPECT_EQ(store->page(0)[layout.page_bytes() - 1], std::byte{0});
  EXPECT_EQ(store->page(2)[0], std::byte{0});
  store->CopyPage(1, 2);
  EXPECT_EQ(store->page(2)[layout.page_bytes() - 1], std::byte{1});
  std::memset(store->slot(0), 2, static_cast<size_t>(layout.slot_bytes()));
  store->CopySlot(0, 1);
  EXPECT_EQ(store->slot(1)[layout.slot_bytes() - 1], std::byte{2});
}

TEST(Store, AnAbsurdSizeIsAnErrorNotACrash) {
  auto store = Store::Create(Layout(Flash()), int64_t{1} << 40, 1);
  EXPECT_EQ(store.status().code(), absl::StatusCode::kResourceExhausted);
}

}  // namespace
}  // namespace fulgur::kv

#include "engine/memory_plan.h"

#include <gmock/gmock.h>

namespace fulgur::engine {
namespace {

using ::testing::HasSubstr;

kv::Layout SmallLayout() {
  kv::LayoutParams params;
  params.ratios = {0, 4, 128};
  params.head_dim = 64;
  params.index_head_dim = 32;
  params.sliding_window = 128;
  return kv::Layout(params);
}

TEST(MemoryPlan, ExplicitSizeIsNeverExceeded) {
  const kv::Layout layout = SmallLayout();
  for (const int64_t pages : {4, 5, 100}) {
    const int64_t bytes = 2 * layout.slot_bytes() + pages * layout.page_bytes();
    MemoryRequest request{.kv_cache_bytes = bytes, .max_num_seqs = 2, .max_model_len = 1000};
    request.max_model_len = 4 * kv::kPageTokens;
    const auto plan = PlanMemory(layout, request, 0);
    ASSERT_TRUE(plan.ok()) << plan.status();
    EXPECT_EQ(plan->num_slots, 2);
    EXPECT_EQ(plan->num_pages, std::min<int64_t>(pages, 2 * 4));  // more could not be used
    EXPECT_LE(plan->total_bytes(), bytes);
  }
}

TEST(MemoryPlan, TakesAShareOfWhatIsLeft) {
  const kv::Layout layout = SmallLayout();
  const MemoryRequest request{
      .memory_utilization = 0.5, .max_num_seqs = 1, .max_model_len = 100 * kv::kPageTokens};
  const int64_t available = 2 * (layout.slot_bytes() + 100 * layout.page_bytes());
  EXPECT_EQ(PlanMemory(layout, request, available)->num_pages, 100);
  EXPECT_FALSE(PlanMemory(layout, request, available - 2).ok());
}

TEST(MemoryPlan, SaysWhatWouldFit) {
  const kv::Layout layout = SmallLayout();
  MemoryRequest request{.kv_cache_bytes = layout.slot_bytes() + 10 * layout.page_bytes(),
                        .max_num_seqs = 1,
                        .max_model_len = 10 * kv::kPageTokens + 2};
  const absl::Status status = PlanMemory(layout, request, 0).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(status.message()), HasSubstr("at most --max-model-len 2561 fits"));

  request.max_model_len = 2561;
  EXPECT_TRUE(PlanMemory(layout, request, 0).ok());
  request.max_model_len = 1 << 20;
  request.shorten_to_fit = true;
  EXPECT_EQ(PlanMemory(layout, request, 0)->max_model_len, 2561);

  request.max_num_seqs = 1000;
  EXPECT_THAT(std::string(PlanMemory(layout, request, 0).status().message()),
              HasSubstr("lower --max-num-seqs"));
}

TEST(MemoryPlan, PagesCanBeGivenByNumber) {
  MemoryRequest request{.num_pages = 7, .max_num_seqs = 4, .max_model_len = 1000};
  EXPECT_EQ(PlanMemory(SmallLayout(), request, 0)->num_pages, 7);
  request.num_pages = 3;
  EXPECT_FALSE(PlanMemory(SmallLayout(), request, 0).ok());
}

TEST(MemoryPlan, DescribesItself) {
  const MemoryPlan plan{.num_pages = 8,
                        .num_slots = 4,
                        .page_bytes = 1000000,
                        .slot_bytes = 500000,
                        .max_model_len = 1024};
  EXPECT_THAT(DescribePlan(plan), HasSubstr("0.010 GB in all; room for 2048 tokens, or 2.0 "));
}

}  // namespace
}  // namespace fulgur::engine

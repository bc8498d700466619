#include "engine/cost_probe.h"

#include <gtest/gtest.h>

#include <thread>

#include "engine/fake_runner.h"

namespace fulgur::engine {
namespace {

using std::chrono::microseconds;

CoreOptions Options() {
  return {.limits = {.max_num_seqs = 8,
                     .max_num_batched_tokens = 64,
                     .max_model_len = 2000,
                     .max_logit_rows = 64},
          .num_pages = 16,
          .num_slots = 8,
          .speculation = {.num_drafts = 4}};
}

TEST(MeasureCosts, FindsWhatRowsCost) {
  FakeRunner runner(16, 8, {.max_drafts = 4});
  runner.checks_context = false;
  runner.before_step = [](const model::StepBatch& batch) {
    std::this_thread::sleep_for(microseconds(500 + 100 * batch.tokens.size()));
    return absl::OkStatus();
  };
  const auto table = MeasureCosts(Options(), runner);
  ASSERT_TRUE(table.ok()) << table.status();
  ASSERT_GE(table->forward.size(), 5U);
  EXPECT_EQ(table->forward.front().size, 1);
  EXPECT_EQ(table->forward.back().size, 40);  // 8 requests with 4 drafts each
  EXPECT_GE(table->forward.back().ms, 4.5);
  EXPECT_EQ(table->draft_one.size(), table->draft_full.size());
  EXPECT_EQ(table->draft_full.back().size, 8);
  EXPECT_EQ(table->max_drafts, 4);
}

TEST(MeasureCosts, KeepsToItsTime) {
  FakeRunner runner(16, 8, {.max_drafts = 4});
  runner.checks_context = false;
  runner.before_step = [](const model::StepBatch&) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    return absl::OkStatus();
  };
  const Clock::time_point start = Clock::now();
  const auto table = MeasureCosts(Options(), runner, std::chrono::milliseconds(1));
  EXPECT_LT(Clock::now() - start, std::chrono::seconds(2));
  ASSERT_TRUE(table.ok());
  EXPECT_EQ(table->forward.size(), 2U);  // the smallest and the largest step in any case
  EXPECT_EQ(table->draft_full.size(), 2U);
}

TEST(MeasureCosts, TheRunnersErrorIsTheResult) {
  FakeRunner runner(16, 8, {.max_drafts = 4});
  runner.checks_context = false;
  runner.before_step = [](const model::StepBatch&) { return absl::InternalError("no power"); };
  EXPECT_EQ(MeasureCosts(Options(), runner).status().message(), "no power");
}

}  // namespace
}  // namespace fulgur::engine

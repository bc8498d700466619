#include "plan/measure.h"

#include <gtest/gtest.h>

namespace fulgur::plan {
namespace {

// How fast is the machine's business: that every figure is there and of a sane size is the test's.
TEST(Measure, FindsEveryFigure) {
  const base::Machine machine = base::DetectMachine();
  base::WorkerTeam team(2);
  const auto figures =
      MeasureMachine(machine, kernels::SelectOps(machine, kernels::OpChoice::kAuto), team);
  ASSERT_TRUE(figures.ok()) << figures.status();
  RecordProperty("figures", DescribeFigures(*figures));
  EXPECT_EQ(figures->cores, 2);
  EXPECT_GT(figures->read_rate, 1e8);
  EXPECT_GT(figures->core_read_rate, 1e8);
  EXPECT_GT(figures->memory_bytes, 0);
  EXPECT_GT(figures->barrier_seconds, 0.0);
  for (const ProductRate& rate : figures->products) {
    EXPECT_GT(rate.unpack, 1e6);
    EXPECT_GT(rate.ops, 1e7);
  }
}

}  // namespace
}  // namespace fulgur::plan

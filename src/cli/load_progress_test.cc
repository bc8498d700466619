#include "cli/load_progress.h"

#include "gtest/gtest.h"

namespace fulgur::cli {
namespace {

TEST(LoadProgressTest, DrawsABar) {
  EXPECT_EQ(ProgressBar(0, 3'000'000'000, 0.5),
            "[..............................] 0 %  0.00 of 3.00 GB, 0.00 GB/s");
  EXPECT_EQ(ProgressBar(1'500'000'000, 3'000'000'000, 2),
            "[###############...............] 50 %  1.50 of 3.00 GB, 0.75 GB/s");
  EXPECT_EQ(ProgressBar(3'000'000'000, 3'000'000'000, 4),
            "[##############################] 100 %  3.00 of 3.00 GB, 0.75 GB/s");
  EXPECT_EQ(ProgressBar(0, 0, 1),
            "[##############################] 100 %  0.00 of 0.00 GB, 0.00 GB/s");
}

}  // namespace
}  // namespace fulgur::cli

#include "base/team.h"

#include <atomic>
#include <numeric>
#include <vector>

#include "gtest/gtest.h"

namespace fulgur::base {
namespace {

TEST(WorkerRankTest, SharesCoverEverythingOnceInGrains) {
  for (int size : {1, 2, 3, 7}) {
    for (int64_t n : {0, 1, 5, 64, 1000}) {
      int64_t next = 0;
      for (int rank = 0; rank < size; ++rank) {
        const auto [begin, end] = WorkerRank(rank, size, nullptr).Share(n, 16);
        EXPECT_EQ(begin, next);
        EXPECT_TRUE(end == n || end % 16 == 0);
        next = end;
      }
      EXPECT_EQ(next, n);
    }
  }
}

TEST(WorkerTeamTest, EveryWorkerRunsEachRegionOnce) {
  WorkerTeam team(3);
  std::vector<int> calls(3, 0);
  for (int round = 0; round < 500; ++round) {
    team.Run([&](const WorkerRank& worker) { ++calls[static_cast<size_t>(worker.rank())]; });
  }
  EXPECT_EQ(calls, std::vector<int>(3, 500));
}

TEST(WorkerTeamTest, BarrierPublishesTheStageBefore) {
  WorkerTeam team(2);
  std::vector<int> stage(2, 0);
  std::atomic<int> stale{0};
  team.Run([&](const WorkerRank& worker) {
    const auto mine = static_cast<size_t>(worker.rank());
    for (int step = 1; step <= 2000; ++step) {
      stage[mine] = step;
      worker.Barrier();
      if (stage[1 - mine] != step) ++stale;
      worker.Barrier();
    }
  });
  EXPECT_EQ(stale, 0);
}

TEST(WorkerTeamTest, TheFirstWorkerWorksAloneWhileOthersWait) {
  WorkerTeam team(3);
  int total = 0;
  std::atomic<int> stale{0};
  const uint32_t before = team.barriers();
  team.Run([&](const WorkerRank& worker) {
    for (int step = 1; step <= 500; ++step) {
      worker.Barrier([&] {
        ++total;
        if (worker.rank() != 0) ++stale;
      });
      if (total != step) ++stale;
      worker.Barrier();
    }
  });
  EXPECT_EQ(total, 500);
  EXPECT_EQ(stale, 0);
  EXPECT_EQ(team.barriers() - before, 1000);
  WorkerRank::Alone().Barrier([&] { ++total; });
  EXPECT_EQ(total, 501);
}

// Workers that stand aside wake late and must neither run a region that ended without them nor miss
// the first that counts them.
TEST(WorkerTeamTest, TheNumberOfActiveWorkersMayChangeBetweenRegions) {
  WorkerTeam team(3);
  std::vector<std::atomic<int>> calls(3);
  std::vector<int> expected(3, 0);
  for (int round = 0; round < 3000; ++round) {
    const int active = 1 + (round * 7 + round / 5) % 3;
    team.SetActive(active);
    std::atomic<int> largest{0};
    team.Run([&](const WorkerRank& worker) {
      ++calls[static_cast<size_t>(worker.rank())];
      worker.Barrier();
      if (worker.size() != active) largest = worker.size();
    });
    ASSERT_EQ(largest, 0);
    for (int rank = 0; rank < active; ++rank) ++expected[static_cast<size_t>(rank)];
    for (size_t rank = 0; rank < 3; ++rank) ASSERT_EQ(calls[rank], expected[rank]);
  }
}

}  // namespace
}  // namespace fulgur::base

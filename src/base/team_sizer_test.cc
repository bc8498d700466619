#include "base/team_sizer.h"

#include <atomic>

#include "gtest/gtest.h"

namespace fulgur::base {
namespace {

using Clock = TeamSizePolicy::Clock;
using std::chrono::seconds;

constexpr CoreTimes kFree = {1'000'000'000, 1'000'000};
constexpr CoreTimes kCrowded = {500'000'000, 500'000'000};
constexpr CoreTimes kIdle = {1'000'000, 1'000'000};

TEST(TeamSizePolicyTest, LeavesOutCrowdedWorkersAndTriesAgain) {
  TeamSizePolicy policy(4);
  const Clock::time_point start{};
  EXPECT_EQ(policy.Next(4, std::vector{kFree, kFree, kFree, kFree}, start), 4);
  EXPECT_EQ(policy.Next(4, std::vector{kFree, kCrowded, kFree, kCrowded}, start), 2);
  EXPECT_EQ(policy.Next(2, std::vector{kFree, kFree}, start + seconds(5)), 2);
  EXPECT_EQ(policy.Next(2, std::vector{kFree, kFree}, start + seconds(11)), 4);
}

TEST(TeamSizePolicyTest, GrowsPatientWhileTheMachineStaysCrowded) {
  TeamSizePolicy policy(2);
  Clock::time_point now{};
  int active = policy.Next(2, std::vector{kCrowded, kFree}, now);
  std::vector<seconds> alone;
  for (int retry = 0; retry < 6; ++retry) {
    const Clock::time_point since = now;
    while (active == 1) active = policy.Next(1, std::vector{kFree}, now += seconds(1));
    alone.push_back(std::chrono::duration_cast<seconds>(now - since));
    active = policy.Next(2, std::vector{kCrowded, kCrowded}, now += seconds(1));
  }
  EXPECT_EQ(alone, (std::vector<seconds>{seconds(10), seconds(20), seconds(40), seconds(80),
                                         seconds(160), seconds(160)}));
}

TEST(TeamSizePolicyTest, NeverLessThanOneAndNothingFromIdleTimes) {
  TeamSizePolicy policy(2);
  EXPECT_EQ(policy.Next(2, std::vector{kCrowded, kCrowded}, Clock::time_point{}), 1);
  EXPECT_EQ(policy.Next(1, std::vector{kCrowded}, Clock::time_point{} + seconds(1)), 1);
  TeamSizePolicy idle(2);
  EXPECT_EQ(idle.Next(2, std::vector{kIdle, kIdle}, Clock::time_point{}), 2);
}

TEST(CoreTimesTest, TheKernelTellsOfARunningThread) {
  WorkerTeam team(1);
  std::atomic<int64_t> sum{0};
  team.Run([&](const WorkerRank&) {
    for (int64_t i = 0; i < 50'000'000; ++i) sum.fetch_add(i, std::memory_order_relaxed);
  });
  EXPECT_GT(ReadCoreTimes(team.ThreadIds().front()).ran_ns, 10'000'000);
  EXPECT_EQ(ReadCoreTimes(0).ran_ns, 0);
}

}  // namespace
}  // namespace fulgur::base

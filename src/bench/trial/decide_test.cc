#include "bench/trial/decide.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace fulgur::bench {
namespace {

MeasuredRun Measured(const std::string& variant, std::map<std::string, double> values,
                     int64_t failed = 0) {
  MeasuredRun run;
  run.variant = variant;
  run.values = std::move(values);
  run.requests = 50;
  run.failed = failed;
  return run;
}

MeasuredRun NotStarted(const std::string& variant, const std::string& why) {
  MeasuredRun run;
  run.variant = variant;
  run.not_started = why;
  return run;
}

// Base runs that differ by about 1 %, and one variant between each two of them.
std::vector<MeasuredRun> Series(const std::vector<double>& variant) {
  std::vector<MeasuredRun> runs;
  const double base[] = {100.0, 101.0, 99.5, 100.5};
  for (size_t i = 0; i < variant.size(); ++i) {
    runs.push_back(Measured("", {{"chat c1", base[i % 4]}}));
    runs.push_back(Measured("v", {{"chat c1", variant[i]}}));
  }
  runs.push_back(Measured("", {{"chat c1", 100.2}}));
  return runs;
}

const DecisionRule kRule;

TEST(Decide, AcceptsWhatIsBetterBeyondTheNoise) {
  const Decision decision = Decide(Series({120, 121, 119}), "v", kRule);
  EXPECT_EQ(decision.decision, "accepted") << decision.reason;
  ASSERT_TRUE(decision.gain && decision.gain->interval);
  EXPECT_NEAR(PercentOf(decision.gain->value), 19.7, 0.3);
  EXPECT_GT(decision.gain->interval->low, 0);
}

TEST(Decide, RejectsWhatIsWorse) {
  const Decision decision = Decide(Series({77, 76, 78}), "v", kRule);
  EXPECT_EQ(decision.decision, "rejected");
  EXPECT_NE(decision.reason.find("worse in chat c1: -23"), std::string::npos) << decision.reason;
}

TEST(Decide, RejectsAGainThatIsNotWorthAChange) {
  const Decision decision = Decide(Series({100.5, 100.0, 100.5}), "v", kRule);
  EXPECT_EQ(decision.decision, "rejected");
  EXPECT_NE(decision.reason.find("no gain worth a change"), std::string::npos) << decision.reason;
}

TEST(Decide, DoesNotDecideWithinTheNoise) {
  std::vector<MeasuredRun> runs;
  for (const double base : {100.0, 130.0, 95.0, 125.0}) {
    runs.push_back(Measured("", {{"chat c1", base}}));
    runs.push_back(Measured("v", {{"chat c1", 122.0}}));
  }
  runs.push_back(Measured("", {{"chat c1", 105.0}}));
  const Decision decision = Decide(runs, "v", kRule);
  EXPECT_EQ(decision.decision, "undecided") << decision.reason;
}

TEST(Decide, OneCellThatIsWorseOutweighsTheMean) {
  std::vector<MeasuredRun> runs;
  for (const double base : {100.0, 101.0, 99.0, 100.0}) {
    runs.push_back(Measured("", {{"chat c1", base}, {"sum c1", base}}));
    runs.push_back(Measured("v", {{"chat c1", 200.0}, {"sum c1", 80.0}}));
  }
  runs.push_back(Measured("", {{"chat c1", 100.0}, {"sum c1", 100.0}}));
  const Decision decision = Decide(runs, "v", kRule);
  EXPECT_EQ(decision.decision, "rejected");
  EXPECT_NE(decision.reason.find("worse in sum c1"), std::string::npos) << decision.reason;
  EXPECT_GT(decision.gain->value, 0);
}

TEST(Decide, KnowsWhichWayAMetricIsBetter) {
  const Decision decision =
      Decide(Series({80, 81, 79}), "v", {.larger_is_better = false, .threshold = 0.05});
  EXPECT_EQ(decision.decision, "accepted") << decision.reason;
}

// A machine that gets slower by 3 % a run: the variant, slower than the first base run, is better.
TEST(Decide, ASteadyDriftCancels) {
  std::vector<MeasuredRun> runs;
  double speed = 100.0;
  for (int i = 0; i < 9; ++i, speed *= 0.97) {
    runs.push_back(i % 2 == 0 ? Measured("", {{"c", speed}}) : Measured("v", {{"c", speed * 1.3}}));
  }
  const Decision decision = Decide(runs, "v", kRule);
  EXPECT_EQ(decision.decision, "accepted") << decision.reason;
  EXPECT_NEAR(PercentOf(decision.gain->value), 30.0, 0.1);
}

// 19 of 50 requests are refused by the load itself, whatever the server does: no verdict.
TEST(Decide, FailuresThatTheBaseHasTooAreNotTheChangesFault) {
  std::vector<MeasuredRun> runs;
  for (int i = 0; i < 3; ++i) {
    runs.push_back(Measured("", {{"c", 100.0 + i}}, 19));
    runs.push_back(Measured("v", {{"c", 130.0}}, 19));
  }
  runs.push_back(Measured("", {{"c", 101.0}}, 19));
  const Decision decision = Decide(runs, "v", kRule);
  EXPECT_EQ(decision.decision, "accepted") << decision.reason;
  EXPECT_NE(decision.reason.find("the change is not the cause"), std::string::npos);
  EXPECT_EQ(decision.failed, 57);
}

TEST(Decide, MoreFailuresThanTheBaseReject) {
  std::vector<MeasuredRun> runs = Series({130, 131, 129});
  runs[1].failed = 19;
  const Decision decision = Decide(runs, "v", kRule);
  EXPECT_EQ(decision.decision, "rejected");
  EXPECT_NE(decision.reason.find("19 of 150 requests failed, with the base 0 of 200"),
            std::string::npos)
      << decision.reason;
}

TEST(Decide, OneFailureAmongManyIsChance) {
  std::vector<MeasuredRun> runs = Series({130, 131, 129});
  runs[1].failed = 1;
  EXPECT_EQ(Decide(runs, "v", kRule).decision, "accepted");
}

TEST(Decide, WhatDidNotStartIsRejected) {
  std::vector<MeasuredRun> runs = Series({100, 100});
  runs[1] = NotStarted("v", "no such flag");
  const Decision decision = Decide(runs, "v", kRule);
  EXPECT_EQ(decision.decision, "rejected");
  EXPECT_EQ(decision.reason, "did not start: no such flag");
}

TEST(Decide, WhatWasNotTriedOrNotMeasuredStaysOpen) {
  std::vector<MeasuredRun> runs = Series({100});
  EXPECT_EQ(Decide(runs, "other", kRule).decision, "undecided");
  runs[1].values.clear();
  runs[1].invalid["chat c1"] = "the client was late";
  const Decision decision = Decide(runs, "v", kRule);
  EXPECT_EQ(decision.decision, "undecided");
  EXPECT_NE(decision.reason.find("the client was late"), std::string::npos);
}

TEST(Decide, AMissingBaseRunIsReplacedByTheNext) {
  std::vector<MeasuredRun> runs = Series({120, 121, 119});
  runs[2] = NotStarted("", "port in use");
  EXPECT_EQ(Decide(runs, "v", kRule).decision, "accepted");
}

// scipy.stats.fisher_exact([[a, A - a], [b, B - b]], "greater")
TEST(FailureProbability, EqualsFishersExactTest) {
  EXPECT_NEAR(FailureProbability(3, 10, 0, 10), 0.10526315789, 1e-9);
  EXPECT_LT(FailureProbability(19, 50, 0, 50), 1e-6);
  EXPECT_NEAR(FailureProbability(0, 10, 5, 10), 1.0, 1e-9);
  EXPECT_NEAR(FailureProbability(10, 10, 10, 10), 1.0, 1e-9);
  EXPECT_GT(FailureProbability(19, 50, 38, 100), 0.5);
}

// With a variant that changes nothing, 95 % intervals must hold 0 about 95 times in 100.
TEST(Decide, IntervalsCoverTheTruth) {
  constexpr uint64_t kSeed = 7;
  SCOPED_TRACE(testing::Message() << "seed " << kSeed);
  std::mt19937_64 random(kSeed);
  std::normal_distribution<double> noise(0.0, 0.04);
  constexpr int kTimes = 4000;
  int covered = 0;
  int accepted = 0;
  for (int time = 0; time < kTimes; ++time) {
    std::vector<MeasuredRun> runs;
    for (int i = 0; i < 7; ++i) {
      runs.push_back(Measured(i % 2 == 0 ? "" : "v", {{"c", 100.0 * std::exp(noise(random))}}));
    }
    const Decision decision = Decide(runs, "v", kRule);
    const Interval interval = decision.gain->interval.value();
    covered += interval.low <= 0 && interval.high >= 0 ? 1 : 0;
    accepted += decision.decision == "accepted" ? 1 : 0;
  }
  EXPECT_NEAR(static_cast<double>(covered) / kTimes, 0.95, 0.02);
  EXPECT_LT(static_cast<double>(accepted) / kTimes, 0.03);
}

}  // namespace
}  // namespace fulgur::bench

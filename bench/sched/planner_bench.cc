// The time that planning the verification of a step takes, over requests and drafts.
#include <benchmark/benchmark.h>

#include <random>
#include <vector>

#include "sched/verify_planner.h"

namespace fulgur::sched {
namespace {

// As measured at start-up: about twenty sizes.
CostTable Table(int32_t max_drafts) {
  CostTable table;
  for (int64_t rows = 1; rows <= 512; rows += std::max<int64_t>(1, rows / 3)) {
    const auto size = static_cast<double>(rows);
    table.forward.push_back({size, 20.0 + 0.3 * size + 0.01 * static_cast<double>(rows % 8)});
  }
  table.ms_per_context_token = 1e-6;
  table.draft_one = {{1, 2.0}, {64, 10.0}};
  table.draft_full = {{1, 3.0}, {64, 20.0}};
  table.max_drafts = max_drafts;
  return table;
}

void PlanStep(benchmark::State& state) {
  const auto requests = static_cast<int>(state.range(0));
  const auto drafts = static_cast<int32_t>(state.range(1));
  SurvivalModel model;
  VerifyPlanner planner({.max_drafts = drafts}, Table(drafts));
  std::mt19937 rng(1);
  std::uniform_real_distribution<float> draw(0.3F, 0.99F);
  std::vector<RequestSurvival> survivals(static_cast<size_t>(requests), RequestSurvival(model));
  std::vector<DraftOffer> offers;
  for (RequestSurvival& survival : survivals) {
    std::vector<float> confidence(static_cast<size_t>(drafts));
    for (int round = 0; round < 5; ++round) {
      for (float& value : confidence) value = draw(rng);
      survival.Offer(model, confidence);
      if (round < 4) survival.Settle(model, 0, 0);
    }
    offers.push_back({.available = drafts,
                      .cap = drafts,
                      .context = 1000,
                      .expected = survival.expected(),
                      .current = survival.current()});
  }
  for (auto _ : state) {
    benchmark::DoNotOptimize(planner.Plan({.max_draft_rows = 1000}, offers).draft_rows);
  }
}
BENCHMARK(PlanStep)->ArgsProduct({{1, 8, 64, 256}, {1, 5, 7}})->Unit(benchmark::kMicrosecond);

// The books of a verified round: calibration and what is expected of the next drafts.
void SettleRound(benchmark::State& state) {
  SurvivalModel model;
  RequestSurvival survival(model);
  const std::vector<float> confidence = {0.9F, 0.8F, 0.7F, 0.6F, 0.5F};
  for (auto _ : state) {
    survival.Offer(model, confidence);
    survival.Settle(model, 5, 3);
  }
}
BENCHMARK(SettleRound)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace fulgur::sched

BENCHMARK_MAIN();

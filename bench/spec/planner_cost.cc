#include <algorithm>
#include <chrono>
#include <random>

#include "fmt/format.h"
#include "parts.h"
#include "sched/verify_planner.h"

namespace fulgur::bench_spec {
namespace {

using Clock = std::chrono::steady_clock;

// As measured at start-up: about twenty sizes.
sched::CostTable Costs(int32_t max_drafts) {
  sched::CostTable table;
  for (int64_t rows = 1; rows <= 512; rows += std::max<int64_t>(1, rows / 3)) {
    const auto size = static_cast<double>(rows);
    table.forward.push_back({size, 20.0 + 0.3 * size});
  }
  table.ms_per_context_token = 1e-6;
  table.draft_one = {{1, 2.0}, {64, 10.0}};
  table.draft_full = {{1, 3.0}, {64, 20.0}};
  table.max_drafts = max_drafts;
  return table;
}

// Median microseconds of planning a step and of the books of its rounds.
double StepMicroseconds(int requests, int32_t drafts, int steps) {
  sched::SurvivalModel model;
  sched::VerifyPlanner planner({.max_drafts = drafts}, Costs(drafts));
  std::mt19937 random(1);
  std::uniform_real_distribution<float> draw(0.3F, 0.99F);
  std::vector<sched::RequestSurvival> survivals(static_cast<size_t>(requests),
                                                sched::RequestSurvival(model));
  std::vector<float> confidence(static_cast<size_t>(drafts));
  std::vector<sched::DraftOffer> offers;
  std::vector<double> times;
  for (int step = 0; step < steps; ++step) {
    for (auto& survival : survivals) {
      for (float& value : confidence) value = draw(random);
      survival.Offer(model, confidence);
    }
    const Clock::time_point start = Clock::now();
    offers.clear();
    for (const auto& survival : survivals) {
      offers.push_back({.available = drafts,
                        .cap = drafts,
                        .context = 1000,
                        .expected = survival.expected(),
                        .current = survival.current()});
    }
    planner.Plan({.max_draft_rows = 1000}, offers);
    times.push_back(std::chrono::duration<double, std::micro>(Clock::now() - start).count());
    for (size_t i = 0; i < survivals.size(); ++i) {
      const int32_t verified = planner.lengths()[i];
      survivals[i].Settle(model, verified, verified / 2);
    }
  }
  return Median(std::move(times));
}

}  // namespace

absl::Status PlannerCost(const BenchOptions& options) {
  fmt::print(
      "\n### Planning a step\n\n| requests | 1 draft, us | 5 drafts, us | 7 drafts, us |\n"
      "|---|---|---|---|\n");
  const int steps = options.quick ? 500 : 5000;
  for (const int requests : {1, 8, 64, 256}) {
    fmt::print("| {} | {:.1f} | {:.1f} | {:.1f} |\n", requests,
               StepMicroseconds(requests, 1, steps), StepMicroseconds(requests, 5, steps),
               StepMicroseconds(requests, 7, steps));
  }
  return absl::OkStatus();
}

}  // namespace fulgur::bench_spec

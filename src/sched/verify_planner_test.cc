#include "sched/verify_planner.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <random>
#include <string>

namespace fulgur::sched {
namespace {

using CostFunction = std::function<double(double rows)>;

struct NamedCost {
  std::string name;
  CostFunction ms;
};

// Shapes of step times over rows.
std::vector<NamedCost> Costs() {
  return {
      {"smooth", [](double rows) { return 20.0 + 0.8 * rows; }},
      // Tiles of eight rows, of which a part is free.
      {"jagged", [](double rows) { return 10.0 + 6.0 * std::ceil(rows / 8.0); }},
      // Two knees: rows are dear, then free, then dear again.
      {"knees",
       [](double rows) {
         return 10.0 + 3.0 * std::min(rows, 6.0) + 0.05 * rows + 2.0 * std::max(0.0, rows - 40.0);
       }},
      // Rows that draw 6 of 256 experts each: every expert that is touched is read once.
      {"experts",
       [](double rows) { return 4.0 + 0.3 * 256.0 * (1.0 - std::pow(1.0 - 6.0 / 256, rows)); }},
      // Nothing is shared between rows: drafts never pay.
      {"linear", [](double rows) { return 5.0 * rows; }},
  };
}

CostTable Sample(const CostFunction& ms, double draft_ms_each, int32_t max_drafts,
                 int64_t up_to = 600) {
  CostTable table;
  for (int64_t rows = 1; rows <= up_to; rows += rows < 64 ? 1 : 8) {
    table.forward.push_back({static_cast<double>(rows), ms(static_cast<double>(rows))});
  }
  if (draft_ms_each > 0.0) {
    table.draft_one = {{1, draft_ms_each}, {64, 64 * draft_ms_each}};
    table.draft_full = table.draft_one;
  }
  table.max_drafts = max_drafts;
  return table;
}

// Survivals of one request, falling.
std::vector<float> RandomSurvivals(std::mt19937& rng, int32_t count) {
  std::uniform_real_distribution<float> draw(0.2F, 1.0F);
  std::vector<float> survivals;
  float survival = 1.0F;
  for (int32_t i = 0; i < count; ++i) survivals.push_back(survival *= draw(rng));
  return survivals;
}

struct Instance {
  std::vector<std::vector<float>> survivals;
  std::vector<int64_t> contexts;

  std::vector<DraftOffer> Offers() const {
    std::vector<DraftOffer> offers;
    for (size_t i = 0; i < survivals.size(); ++i) {
      const auto count = static_cast<int32_t>(survivals[i].size());
      offers.push_back({.available = count,
                        .cap = count,
                        .context = contexts[i],
                        .expected = survivals[i],
                        .current = survivals[i]});
    }
    return offers;
  }
};

Instance RandomInstance(std::mt19937& rng, int requests, int32_t drafts, int64_t longest = 0) {
  Instance instance;
  for (int i = 0; i < requests; ++i) {
    instance.survivals.push_back(RandomSurvivals(rng, drafts));
    instance.contexts.push_back(longest == 0 ? 0 : static_cast<int64_t>(rng() % longest));
  }
  return instance;
}

// Tokens per millisecond if these numbers of drafts are verified.
double Rate(const CostModel& costs, const Instance& instance, std::span<const int32_t> lengths,
            double draft_ms) {
  double tokens = 0.0;
  int64_t rows = 0;
  int64_t context = 0;
  for (size_t i = 0; i < lengths.size(); ++i) {
    tokens += 1.0;
    for (int32_t j = 0; j < lengths[i]; ++j) {
      tokens += instance.survivals[i][static_cast<size_t>(j)];
    }
    rows += 1 + lengths[i];
    context += instance.contexts[i] * (1 + lengths[i]);
  }
  return tokens / (costs.Forward({.rows = rows, .context = context}) + draft_ms);
}

double BestRate(const CostModel& costs, const Instance& instance, double draft_ms) {
  std::vector<int32_t> lengths(instance.survivals.size(), 0);
  double best = 0.0;
  for (;;) {
    best = std::max(best, Rate(costs, instance, lengths, draft_ms));
    size_t i = 0;
    while (i < lengths.size() && lengths[i] == static_cast<int32_t>(instance.survivals[i].size())) {
      lengths[i++] = 0;
    }
    if (i == lengths.size()) return best;
    ++lengths[i];
  }
}

constexpr StepOutlook kRoomy{.max_draft_rows = 1 << 20};

TEST(VerifyPlanner, FindsTheBestOfAllPlans) {
  std::mt19937 rng(7);
  for (const NamedCost& cost : Costs()) {
    SCOPED_TRACE(cost.name);
    for (int round = 0; round < 300; ++round) {
      const int requests = 1 + static_cast<int>(rng() % 4);
      const Instance instance = RandomInstance(rng, requests, 1 + static_cast<int32_t>(rng() % 4));
      const CostTable table = Sample(cost.ms, 0.0, 4);
      VerifyPlanner planner({.max_drafts = 4}, table);
      planner.Plan(kRoomy, instance.Offers());
      const double best = BestRate(planner.costs(), instance, 0.0);
      const double found = Rate(planner.costs(), instance, planner.lengths(), 0.0);
      ASSERT_GE(found, best * (1 - 1e-6)) << "round " << round;
    }
  }
}

TEST(VerifyPlanner, FindsTheBestPlanWithLongContexts) {
  std::mt19937 rng(8);
  for (const NamedCost& cost : Costs()) {
    SCOPED_TRACE(cost.name);
    for (int round = 0; round < 100; ++round) {
      const Instance instance = RandomInstance(rng, 3, 3, 100000);
      CostTable table = Sample(cost.ms, 0.0, 3);
      table.ms_per_context_token = 1e-4;
      VerifyPlanner planner({.max_drafts = 3}, table);
      for (int i = 0; i < 5; ++i) planner.Plan(kRoomy, instance.Offers());
      const double best = BestRate(planner.costs(), instance, 0.0);
      ASSERT_GE(Rate(planner.costs(), instance, planner.lengths(), 0.0), 0.98 * best) << round;
    }
  }
}

TEST(VerifyPlanner, LongContextMakesRowsDearer) {
  CostTable table = Sample([](double rows) { return 20.0 + 0.1 * rows; }, 0.0, 5);
  table.ms_per_context_token = 1e-4;
  const auto verified = [&](int64_t context) {
    VerifyPlanner planner({.max_drafts = 5}, table);
    const Instance instance{{{0.6F, 0.5F, 0.4F, 0.3F, 0.2F}}, {context}};
    for (int i = 0; i < 3; ++i) planner.Plan(kRoomy, instance.Offers());
    return planner.lengths()[0];
  };
  EXPECT_EQ(verified(1000), 5);
  EXPECT_LT(verified(1000000), 3);
}

// The rule that keeps sampled drafts free of bias: whether a draft is verified does not depend on
// the survivals of the drafts behind it, nor on anything they could tell.
TEST(VerifyPlanner, NeverLooksAhead) {
  std::mt19937 rng(9);
  for (const NamedCost& cost : Costs()) {
    const CostTable table = Sample(cost.ms, 0.0, 5);
    for (int round = 0; round < 200; ++round) {
      const Instance old = RandomInstance(rng, 3, 5);
      Instance now = RandomInstance(rng, 3, 5);
      const auto plan = [&] {
        VerifyPlanner planner({.max_drafts = 5}, table);
        auto offers = now.Offers();
        for (size_t i = 0; i < offers.size(); ++i) offers[i].expected = old.survivals[i];
        planner.Plan(kRoomy, offers);
        return std::vector<int32_t>(planner.lengths().begin(), planner.lengths().end());
      };
      const std::vector<int32_t> before = plan();
      const size_t changed = rng() % 3;
      const auto slot = static_cast<int32_t>(rng() % 5);
      const std::vector<float> saved = now.survivals[changed];
      float survival = saved[static_cast<size_t>(slot)];
      for (size_t j = static_cast<size_t>(slot) + 1; j < 5; ++j) {
        survival *= std::uniform_real_distribution<float>()(rng);
        now.survivals[changed][j] = survival;
      }
      const std::vector<int32_t> after = plan();
      // Slots up to the changed ones are in or out as before.
      EXPECT_EQ(before[changed] > slot, after[changed] > slot) << cost.name << " round " << round;
    }
  }
}

TEST(VerifyPlanner, KeepsToTheRoomThereIs) {
  std::mt19937 rng(10);
  const CostTable table = Sample([](double) { return 10.0; }, 0.0, 5);
  for (const bool adaptive : {true, false}) {
    for (int64_t room = 0; room < 20; ++room) {
      VerifyPlanner planner({.max_drafts = 5, .adaptive = adaptive}, table);
      const Instance instance = RandomInstance(rng, 3, 5);
      const VerifyPlan& plan = planner.Plan({.max_draft_rows = room}, instance.Offers());
      EXPECT_EQ(plan.draft_rows, std::min<int64_t>(room, 15));
    }
  }
}

TEST(VerifyPlanner, FixedVerifiesWhatIsThere) {
  VerifyPlanner planner({.max_drafts = 3, .adaptive = false}, CostTable{});
  const std::vector<float> hopeless = {0.01F, 0.001F, 0.0F};
  std::vector<DraftOffer> offers(3);
  offers[0] = {.available = 3, .cap = 3, .expected = hopeless, .current = hopeless};
  offers[1] = {.available = 1, .cap = 2, .expected = hopeless, .current = hopeless};
  offers[2] = {};  // takes no part
  const VerifyPlan& plan = planner.Plan(kRoomy, offers);
  EXPECT_EQ(std::vector<int32_t>(planner.lengths().begin(), planner.lengths().end()),
            (std::vector<int32_t>{3, 1, 0}));
  EXPECT_EQ(std::vector<uint8_t>(planner.drafting().begin(), planner.drafting().end()),
            (std::vector<uint8_t>{1, 1, 0}));
  EXPECT_EQ(plan.width, 3);
  EXPECT_EQ(plan.mode, SpeculationMode::kOn);
}

TEST(VerifyPlanner, PinnedDraftsAreVerifiedWhateverTheyCost) {
  VerifyPlanner planner({.max_drafts = 3}, Sample([](double rows) { return 10 * rows; }, 0.0, 3));
  const std::vector<float> poor = {0.1F, 0.05F, 0.01F};
  std::vector<DraftOffer> offers(2, {.available = 3, .cap = 3, .expected = poor, .current = poor});
  offers[1].pinned = true;
  planner.Plan(kRoomy, offers);
  EXPECT_EQ(planner.lengths()[0], 0);
  EXPECT_EQ(planner.lengths()[1], 3);
}

TEST(VerifyPlanner, WithoutDecodesThereIsNothingToPlan) {
  VerifyPlanner planner({.max_drafts = 3}, Sample([](double rows) { return rows; }, 1.0, 3));
  const VerifyPlan& plan = planner.Plan({.other_rows = 100, .max_draft_rows = 100}, {});
  EXPECT_EQ(plan.draft_rows, 0);
  EXPECT_NEAR(plan.predicted_ms, 100, 1);
}

// Decodes with drafts of a given quality on a machine of given costs, and counts what comes out.
struct Scene {
  CostFunction truth;
  CostFunction believed;  // what was measured at start-up
  double draft_ms_each = 0.0;
  int requests = 1;
  int32_t max_drafts = 5;
  double acceptance = 0.7;  // of a draft whose predecessors were accepted, on average
  double spread = 1.0;      // of its logarithm of odds, which the confidence knows in part
  double timing_noise = 0.05;
  bool adaptive = true;
  int steps = 2000;
  int warm_up = 400;
};

struct Outcome {
  double rate = 0.0;  // tokens per millisecond
  double plain = 0.0;
  int drafting_steps = 0;
  double ratio() const { return rate / plain; }
};

double Sigmoid(double x) { return 1.0 / (1.0 + std::exp(-x)); }
double Logit(double p) { return std::log(p / (1.0 - p)); }

class Simulation {
 public:
  explicit Simulation(const Scene& scene)
      : scene_(scene),
        planner_({.max_drafts = scene.max_drafts, .adaptive = scene.adaptive},
                 Sample(scene.believed, scene.draft_ms_each, scene.max_drafts)) {
    for (int i = 0; i < scene.requests; ++i) {
      requests_.emplace_back(model_);
      chances_.emplace_back();
    }
  }

  Outcome Run(double acceptance, int steps, int warm_up) {
    double tokens = 0.0;
    double ms = 0.0;
    Outcome outcome;
    for (int step = 0; step < steps; ++step) {
      const auto [step_tokens, step_ms, drafted] = Step(acceptance);
      if (step < warm_up) continue;
      tokens += step_tokens;
      ms += step_ms;
      outcome.drafting_steps += drafted ? 1 : 0;
    }
    outcome.rate = tokens / ms;
    outcome.plain = scene_.requests / scene_.truth(scene_.requests);
    return outcome;
  }

 private:
  struct StepResult {
    double tokens, ms;
    bool drafted;
  };

  StepResult Step(double acceptance) {
    std::vector<DraftOffer> offers;
    for (const RequestSurvival& request : requests_) {
      offers.push_back({.available = static_cast<int32_t>(request.current().size()),
                        .cap = scene_.max_drafts,
                        .expected = request.expected(),
                        .current = request.current()});
    }
    const VerifyPlan plan = planner_.Plan(kRoomy, offers);
    double tokens = 0.0;
    int64_t drafters = 0;
    for (size_t i = 0; i < requests_.size(); ++i) {
      const int32_t verified = planner_.lengths()[i];
      const int32_t accepted = Verify(i, verified);
      tokens += 1 + accepted;
      const bool had_drafts = !requests_[i].current().empty();
      requests_[i].Settle(model_, verified, accepted);
      if (!had_drafts) requests_[i].Fade(model_);
      if (planner_.drafting()[i] == 0) continue;
      ++drafters;
      Draft(i, plan.width, acceptance);
    }
    const int64_t rows = scene_.requests + plan.draft_rows;
    const double forward_ms = scene_.truth(static_cast<double>(rows));
    const double draft_ms = scene_.draft_ms_each * static_cast<double>(drafters);
    planner_.ObserveForward({.rows = rows, .drafts = plan.draft_rows}, Noisy(forward_ms));
    planner_.ObserveDraft(drafters, plan.width, Noisy(draft_ms));
    return {tokens, forward_ms + draft_ms, drafters > 0};
  }

  double Noisy(double ms) {
    return ms * std::exp(std::normal_distribution<double>(0, scene_.timing_noise)(rng_));
  }

  void Draft(size_t request, int32_t width, double acceptance) {
    std::vector<float> confidence;
    chances_[request].clear();
    for (int32_t i = 0; i < width; ++i) {
      const double logit = acceptance <= 0.0 ? -9.0
                                             : Logit(acceptance) + std::normal_distribution<double>(
                                                                       0, scene_.spread)(rng_);
      chances_[request].push_back(Sigmoid(logit));
      const double told = logit + std::normal_distribution<double>(0, 0.5)(rng_);
      confidence.push_back(static_cast<float>(Sigmoid(acceptance <= 0.0 ? 2.0 : told + 0.5)));
    }
    requests_[request].Offer(model_, confidence);
  }

  int32_t Verify(size_t request, int32_t verified) {
    int32_t accepted = 0;
    while (accepted < verified && std::uniform_real_distribution<double>()(rng_) <
                                      chances_[request][static_cast<size_t>(accepted)]) {
      ++accepted;
    }
    return accepted;
  }

  const Scene scene_;
  std::mt19937 rng_{5};
  SurvivalModel model_;
  VerifyPlanner planner_;
  std::vector<RequestSurvival> requests_;
  std::vector<std::vector<double>> chances_;
};

Outcome Simulate(const Scene& scene) {
  return Simulation(scene).Run(scene.acceptance, scene.steps, scene.warm_up);
}

std::string Describe(const NamedCost& cost, const Scene& scene) {
  return cost.name + ", " + std::to_string(scene.requests) + " requests, acceptance " +
         std::to_string(scene.acceptance) + ", draft " + std::to_string(scene.draft_ms_each);
}

TEST(VerifyPlannerSimulation, IsNeverSlowerThanNoDrafts) {
  for (const NamedCost& cost : Costs()) {
    for (const int requests : {1, 4, 16, 64}) {
      for (const double acceptance : {0.0, 0.4, 0.9}) {
        for (const double draft : {0.2, 3.0}) {
          Scene scene{.truth = cost.ms,
                      .believed = cost.ms,
                      .draft_ms_each = draft,
                      .requests = requests,
                      .acceptance = acceptance,
                      .steps = 1500};
          SCOPED_TRACE(Describe(cost, scene));
          EXPECT_GE(Simulate(scene).ratio(), 0.975);
        }
      }
    }
  }
}

TEST(VerifyPlannerSimulation, IsNeverSlowerWhereTheTableIsWrong) {
  for (const NamedCost& truth : Costs()) {
    for (const NamedCost& believed : Costs()) {
      for (const double acceptance : {0.2, 0.7}) {
        Scene scene{.truth = truth.ms,
                    .believed = believed.ms,
                    .draft_ms_each = 0.5,
                    .requests = 6,
                    .acceptance = acceptance,
                    .steps = 4500,
                    .warm_up = 2500};
        SCOPED_TRACE(Describe(truth, scene) + ", believed to be " + believed.name);
        EXPECT_GE(Simulate(scene).ratio(), 0.96);
      }
    }
  }
}

TEST(VerifyPlannerSimulation, ComesCloseToTheBestFixedNumber) {
  for (const NamedCost& cost : Costs()) {
    for (const int requests : {1, 3, 24}) {
      for (const double acceptance : {0.3, 0.6, 0.9}) {
        Scene scene{.truth = cost.ms,
                    .believed = cost.ms,
                    .draft_ms_each = 0.3,
                    .requests = requests,
                    .acceptance = acceptance,
                    .steps = 1500};
        SCOPED_TRACE(Describe(cost, scene));
        const Outcome adaptive = Simulate(scene);
        double best = adaptive.plain;
        scene.adaptive = false;
        for (const int32_t drafts : {1, 3, 5}) {
          scene.max_drafts = drafts;
          best = std::max(best, Simulate(scene).rate);
        }
        // Small gains of poor drafts are left alone: it takes 3 % to switch drafting on, and while
        // it is off its chances are known by probes only.
        EXPECT_GE(adaptive.rate, 0.93 * best);
      }
    }
  }
}

TEST(VerifyPlannerSimulation, SwitchesOffAndOnAgain) {
  const CostFunction cost = [](double rows) { return 20.0 + 2.0 * rows; };
  Scene scene{.truth = cost, .believed = cost, .draft_ms_each = 2.0, .requests = 4};
  Simulation simulation(scene);
  EXPECT_GT(simulation.Run(0.85, 1000, 200).ratio(), 1.3);
  const Outcome bad = simulation.Run(0.0, 3000, 300);
  EXPECT_LT(bad.drafting_steps, 150);
  EXPECT_GE(bad.ratio(), 0.98);
  EXPECT_GT(simulation.Run(0.85, 6000, 3000).ratio(), 1.3);
}

TEST(VerifyPlannerSimulation, LeavesASizeThatBecameSlow) {
  // Flat up to 4 rows, then a step; the machine turns out to be slow at exactly four rows.
  const CostFunction believed = [](double rows) { return 20.0 + 0.1 * rows; };
  const CostFunction truth = [](double rows) {
    return 20.0 + 0.1 * rows + (rows > 2.5 ? 25.0 : 0.0);
  };
  const Outcome outcome =
      Simulate({.truth = truth, .believed = believed, .draft_ms_each = 0.1, .acceptance = 0.6});
  EXPECT_GE(outcome.ratio(), 1.2);  // one draft: 1.6 tokens in 20.2 ms
}

}  // namespace
}  // namespace fulgur::sched

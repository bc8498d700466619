#include "sched/survival_model.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace fulgur::sched {
namespace {

double Sigmoid(double x) { return 1.0 / (1.0 + std::exp(-x)); }

// A drafter whose confidence is distorted: its logit is three times the true one, plus one.
class DistortedDrafter {
 public:
  explicit DistortedDrafter(uint32_t seed) : rng_(seed) {}

  struct Draft {
    float confidence;
    bool accepted;
    double chance;
  };
  Draft Next() {
    const double logit = std::normal_distribution<double>(0.5, 1.0)(rng_);
    const double chance = Sigmoid(logit);
    return {static_cast<float>(Sigmoid(3.0 * logit + 1.0)),
            std::uniform_real_distribution<double>()(rng_) < chance, chance};
  }

 private:
  std::mt19937 rng_;
};

TEST(SurvivalModel, CalibratesADistortedConfidence) {
  SurvivalModel model;
  DistortedDrafter drafter(1);
  for (int i = 0; i < 4000; ++i) {
    const auto draft = drafter.Next();
    model.Observe(0, draft.confidence, 0.0, draft.accepted);
  }
  double bias = 0.0;
  double distance = 0.0;
  constexpr int kDraws = 4000;
  for (int i = 0; i < kDraws; ++i) {
    const auto draft = drafter.Next();
    const double predicted = model.Conditional(0, draft.confidence, 0.0);
    bias += (predicted - draft.chance) / kDraws;
    distance += std::abs(predicted - draft.chance) / kDraws;
    model.Observe(0, draft.confidence, 0.0, draft.accepted);
  }
  EXPECT_NEAR(bias, 0.0, 0.02);
  EXPECT_LT(distance, 0.05);
  EXPECT_LT(model.CalibrationError(0), 0.04);
}

TEST(SurvivalModel, LearnsThatAConfidentDrafterIsAlwaysWrong) {
  SurvivalModel model;
  for (int i = 0; i < 60; ++i) model.Observe(2, 0.999F, 0.0, false);
  EXPECT_LT(model.Conditional(2, 0.999F, 0.0), 0.15);
  EXPECT_LT(model.BaseRate(2), 0.3);
  // Other slots know nothing of it.
  EXPECT_GT(model.Conditional(1, 0.999F, 0.0), 0.9);
}

TEST(SurvivalModel, FollowsTextThatChanges) {
  SurvivalModel model;
  std::mt19937 rng(3);
  const auto feed = [&](double rate, int count) {
    for (int i = 0; i < count; ++i) {
      model.Observe(0, 0.7F, 0.0, std::uniform_real_distribution<double>()(rng) < rate);
    }
  };
  feed(0.9, 2000);
  EXPECT_NEAR(model.Conditional(0, 0.7F, 0.0), 0.9, 0.05);
  feed(0.2, 2000);
  EXPECT_NEAR(model.Conditional(0, 0.7F, 0.0), 0.2, 0.07);
}

TEST(SurvivalModel, StaysFiniteAtTheEdges) {
  SurvivalModel model;
  for (int i = 0; i < 10000; ++i) {
    model.Observe(0, i % 2 == 0 ? 0.0F : 1.0F, 0.0, i % 3 == 0);
    ASSERT_TRUE(std::isfinite(model.Conditional(0, 0.5F, 0.0)));
  }
}

TEST(RequestSurvival, FallsFromSlotToSlot) {
  SurvivalModel model;
  RequestSurvival request(model);
  const std::vector<float> confidence = {0.9F, 0.99F, 0.2F, 1.0F};
  request.Offer(model, confidence);
  ASSERT_EQ(request.current().size(), 4U);
  for (size_t i = 1; i < 4; ++i) EXPECT_LE(request.current()[i], request.current()[i - 1]);
  for (size_t i = 1; i < kMaxDrafts; ++i) {
    EXPECT_LE(request.expected()[i], request.expected()[i - 1]);
  }
}

TEST(RequestSurvival, ExpectsNothingOfTheDraftsAtHand) {
  SurvivalModel model;
  RequestSurvival request(model);
  const std::vector<float> before(request.expected().begin(), request.expected().end());
  request.Offer(model, std::vector<float>{0.01F, 0.01F});
  const std::vector<float> after(request.expected().begin(), request.expected().end());
  EXPECT_EQ(before, after);
  request.Settle(model, 0, 0);
  EXPECT_LT(request.expected()[0], before[0]);
  EXPECT_TRUE(request.current().empty());
}

TEST(RequestSurvival, TellsPredictableTextFromOther) {
  SurvivalModel model;
  RequestSurvival good(model);
  RequestSurvival bad(model);
  const std::vector<float> confidence(5, 0.7F);
  for (int i = 0; i < 100; ++i) {
    good.Offer(model, confidence);
    good.Settle(model, 5, 5);
    bad.Offer(model, confidence);
    bad.Settle(model, 5, 0);
  }
  EXPECT_GT(good.expected()[2], 0.6F);
  EXPECT_LT(bad.expected()[0], 0.35F);
  const float outcast = bad.expected()[0];
  for (int i = 0; i < 300; ++i) bad.Fade(model);
  EXPECT_GT(bad.expected()[0], outcast);
}

}  // namespace
}  // namespace fulgur::sched

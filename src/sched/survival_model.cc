#include "sched/survival_model.h"

#include <algorithm>
#include <cmath>

namespace fulgur::sched {
namespace {

constexpr double kFirstRate = 0.8;       // of slots of which nothing is known: worth a trial
constexpr double kForget = 0.998;        // per observation of a slot
constexpr double kSlopePrecision = 4.0;  // of the first guess, slope 1 and bias 0
constexpr double kBiasPrecision = 4.0;
constexpr double kLargestLogit = 6.0;
constexpr double kLargestStep = 0.5;  // of a logit, by one observation
constexpr double kLeastRateStep = 0.02;
constexpr double kFirstRateCount = 3.0;  // observations that the first guess is worth
constexpr double kForgetBins = 0.999;
constexpr double kRememberRate = 0.3;
constexpr double kFadeRate = 0.01;
constexpr double kOffsetRate = 0.15;
constexpr double kOffsetDecay = 0.99;
constexpr double kLargestOffset = 3.0;

double Logit(double p) {
  constexpr double kEdge = 1e-4;
  p = std::clamp(p, kEdge, 1.0 - kEdge);
  return std::clamp(std::log(p / (1.0 - p)), -kLargestLogit, kLargestLogit);
}

double Sigmoid(double logit) { return 1.0 / (1.0 + std::exp(-logit)); }

}  // namespace

SurvivalModel::SurvivalModel() {
  base_rates_.fill(kFirstRate);
  for (Calibration& calibration : calibrations_) {
    calibration.mean = Logit(kFirstRate);  // at first the drafter is believed
    calibration.information = {kSlopePrecision, 0.0, kBiasPrecision};
  }
}

double SurvivalModel::Conditional(int32_t slot, float confidence, double offset) const {
  const Calibration& c = calibrations_[static_cast<size_t>(slot)];
  const double spread = c.slope * (Logit(confidence) - c.mean);
  return Sigmoid(Logit(BaseRate(slot)) + c.bias + spread + offset);
}

void SurvivalModel::Observe(int32_t slot, float confidence, double offset, bool accepted) {
  const auto place = static_cast<size_t>(slot);
  Calibration& calibration = calibrations_[place];
  const double p = Conditional(slot, confidence, offset);
  const double outcome = accepted ? 1.0 : 0.0;
  const double logit = Logit(confidence);
  Learn(calibration, logit - calibration.mean, outcome - p, p * (1.0 - p));
  const double step = std::max(kLeastRateStep, 1.0 / (kFirstRateCount + ++num_observed_[place]));
  base_rates_[place] += step * (outcome - base_rates_[place]);
  calibration.mean += step * (logit - calibration.mean);
  Count(bins_[place], p, outcome);
}

void SurvivalModel::Count(std::array<Bin, kBins>& bins, double p, double outcome) {
  for (Bin& bin : bins) {
    bin = {bin.count * kForgetBins, bin.predicted * kForgetBins, bin.accepted * kForgetBins};
  }
  Bin& bin = bins[std::min(kBins - 1, static_cast<size_t>(p * kBins))];
  bin.count += 1.0;
  bin.predicted += p;
  bin.accepted += outcome;
}

void SurvivalModel::Learn(Calibration& c, double deviation, double error, double variance) {
  constexpr double kRenew = 1.0 - kForget;
  auto& [ss, sb, bb] = c.information;
  ss = kForget * ss + kRenew * kSlopePrecision + variance * deviation * deviation;
  sb = kForget * sb + variance * deviation;
  bb = kForget * bb + kRenew * kBiasPrecision + variance;
  const double by_slope = error * deviation - kRenew * kSlopePrecision * (c.slope - 1.0);
  const double by_bias = error - kRenew * kBiasPrecision * c.bias;
  const double determinant = ss * bb - sb * sb;
  const double slope_step = (bb * by_slope - sb * by_bias) / determinant;
  const double bias_step = (ss * by_bias - sb * by_slope) / determinant;
  // One surprise must not turn everything over.
  const double change = std::abs(slope_step * deviation + bias_step);
  const double scale = change > kLargestStep ? kLargestStep / change : 1.0;
  // A confidence may say nothing, but not the contrary.
  c.slope = std::clamp(c.slope + scale * slope_step, 0.0, 4.0);
  c.bias = std::clamp(c.bias + scale * bias_step, -1.0, 1.0);
}

double SurvivalModel::CalibrationError(int32_t slot) const {
  double count = 0.0;
  double distance = 0.0;
  for (const Bin& bin : bins_[static_cast<size_t>(slot)]) {
    count += bin.count;
    distance += std::abs(bin.predicted - bin.accepted);
  }
  return count > 0.0 ? distance / count : 0.0;
}

RequestSurvival::RequestSurvival(const SurvivalModel& model) {
  double survival = 1.0;
  for (int32_t slot = 0; slot < kMaxDrafts; ++slot) {
    survival *= model.BaseRate(slot);
    expected_[static_cast<size_t>(slot)] = static_cast<float>(survival);
  }
}

void RequestSurvival::Offer(const SurvivalModel& model, std::span<const float> confidence) {
  num_drafts_ = static_cast<int32_t>(confidence.size());
  double survival = 1.0;
  for (int32_t slot = 0; slot < num_drafts_; ++slot) {
    const auto place = static_cast<size_t>(slot);
    confidence_[place] = confidence[place];
    survival *= model.Conditional(slot, confidence[place], offset_);
    current_[place] = static_cast<float>(survival);
  }
}

void RequestSurvival::Settle(SurvivalModel& model, int32_t verified, int32_t accepted) {
  const double offset = offset_;
  for (int32_t slot = 0; slot < std::min(verified, accepted + 1); ++slot) {
    const float confidence = confidence_[static_cast<size_t>(slot)];
    const double error =
        (slot < accepted ? 1.0 : 0.0) - model.Conditional(slot, confidence, offset_);
    offset_ =
        std::clamp(kOffsetDecay * offset_ + kOffsetRate * error, -kLargestOffset, kLargestOffset);
    model.Observe(slot, confidence, offset, slot < accepted);
  }
  if (num_drafts_ > 0) Remember(model);
  num_drafts_ = 0;
}

void RequestSurvival::Remember(const SurvivalModel& model) {
  double survival = 1.0;
  for (int32_t slot = 0; slot < kMaxDrafts; ++slot) {
    const auto place = static_cast<size_t>(slot);
    survival = slot < num_drafts_ ? current_[place] : survival * model.BaseRate(slot);
    expected_[place] += static_cast<float>(kRememberRate * (survival - expected_[place]));
  }
}

void RequestSurvival::Fade(const SurvivalModel& model) {
  offset_ *= kOffsetDecay;
  double survival = 1.0;
  for (int32_t slot = 0; slot < kMaxDrafts; ++slot) {
    const auto place = static_cast<size_t>(slot);
    survival *= model.BaseRate(slot);
    expected_[place] += static_cast<float>(kFadeRate * (survival - expected_[place]));
  }
}

}  // namespace fulgur::sched

// How likely drafts are to be accepted, learnt from what became of earlier ones.
//
// A drafter's confidence ranks its drafts well but is off by its own measure, differently at each
// place in a draft and in each kind of text. Each place has a logistic calibration of two numbers,
// corrected by every verified draft (a Newton step on a likelihood that forgets); each request has
// one offset of its own. Only drafts whose predecessors were accepted say something, and those that
// were not verified say nothing.
// Plain numbers; one thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace fulgur::sched {

// The most drafts of one sequence in one step.
inline constexpr int32_t kMaxDrafts = 16;

class SurvivalModel {
 public:
  SurvivalModel();

  // The chance that the draft at `slot` is accepted if those before it are. `confidence` in [0, 1]
  // is the drafter's own opinion; `offset` is the request's.
  double Conditional(int32_t slot, float confidence, double offset) const;

  // What became of a verified draft whose predecessors were accepted.
  void Observe(int32_t slot, float confidence, double offset, bool accepted);

  // The share of drafts at `slot` that were accepted of late, those before them given.
  double BaseRate(int32_t slot) const { return base_rates_[static_cast<size_t>(slot)]; }

  // Mean distance between predicted and observed acceptance over tenths of the prediction
  // (expected calibration error) at a slot; 0 without observations.
  double CalibrationError(int32_t slot) const;

 private:
  // logit(P) = logit(base rate) + bias + slope * (logit(confidence) - mean of these). The base rate
  // follows a change of text at once; slope and bias, which need many drafts, only spread it.
  struct Calibration {
    double slope = 1.0;
    double bias = 0.0;
    double mean = 0.0;
    std::array<double, 3> information = {};  // symmetric 2 x 2: ss, sb, bb
  };
  struct Bin {
    double count = 0.0;
    double predicted = 0.0;
    double accepted = 0.0;
  };
  static constexpr size_t kBins = 10;

  static void Count(std::array<Bin, kBins>& bins, double p, double outcome);
  static void Learn(Calibration& calibration, double deviation, double error, double variance);

  std::array<Calibration, kMaxDrafts> calibrations_;
  std::array<double, kMaxDrafts> base_rates_;
  std::array<double, kMaxDrafts> num_observed_ = {};
  std::array<std::array<Bin, kBins>, kMaxDrafts> bins_ = {};
};

// The drafts of one request: those at hand, and what those before them tell of those to come.
class RequestSurvival {
 public:
  explicit RequestSurvival(const SurvivalModel& model);

  // The chance that all drafts up to slot j are accepted: [kMaxDrafts], falling. Knows nothing of
  // the drafts at hand.
  std::span<const float> expected() const { return expected_; }
  // The same for the drafts at hand, by their confidences.
  std::span<const float> current() const {
    return std::span(current_).first(static_cast<size_t>(num_drafts_));
  }

  // New drafts are at hand. At most kMaxDrafts.
  void Offer(const SurvivalModel& model, std::span<const float> confidence);
  // The first `verified` drafts at hand were verified, and the first `accepted` of them stand. None
  // is at hand any more.
  void Settle(SurvivalModel& model, int32_t verified, int32_t accepted);
  // The drafts at hand, if any, are forgotten.
  void Drop() { num_drafts_ = 0; }
  // A step without drafts: what was learnt fades, so that an outcast is tried again.
  void Fade(const SurvivalModel& model);

 private:
  void Remember(const SurvivalModel& model);

  std::array<float, kMaxDrafts> expected_ = {};
  std::array<float, kMaxDrafts> current_ = {};
  std::array<float, kMaxDrafts> confidence_ = {};
  int32_t num_drafts_ = 0;
  double offset_ = 0.0;  // of this request's chances, as logarithm of odds
};

}  // namespace fulgur::sched

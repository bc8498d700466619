// Decides how many drafts of each request the next step verifies, and who drafts at all.
//
// A step that verifies K drafts yields one token per request and those of the K that are accepted;
// it costs what the forward pass over that many rows costs, and the drafting. The planner chooses
// the K with the most tokens per millisecond, and drafts only while that is more than decoding
// without drafts yields: so speculation is never slower than its absence, up to errors in the costs
// - which every step corrects - and a budget for probing (half a percent of the time).
//
// What may be looked at (DSpark, "hardware-aware prefix scheduler"; with sampled drafts, looking at
// more would bias the text): K, and the prices of rows that follow from it, come from survival
// probabilities of earlier steps. The drafts' own survivals then only decide, in falling order,
// who gets the rows, and end the row that no longer pays its price. A request's survivals fall from
// slot to slot, so what is admitted is always the beginning of its drafts.
//
// Plain numbers, no clock, no tensors, no allocation after warm-up. One thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "sched/cost_model.h"
#include "sched/survival_model.h"

namespace fulgur::sched {

struct PlannerOptions {
  int32_t max_drafts = 1;      // per request and step
  bool adaptive = true;        // false: always draft and verify max_drafts
  double entry_gain = 0.03;    // what drafting must promise before it is switched on
  int32_t patience = 8;        // steps that must agree before drafting is switched on or off
  double probe_share = 0.005;  // of the time, for finding out
};

// One request that decodes in the next step. Its last token takes one row in any case.
struct DraftOffer {
  int32_t available = 0;            // drafts at hand, at most kMaxDrafts
  int32_t cap = 0;                  // the most it may have verified in a step; 0: it takes no part
  bool pinned = false;              // all at hand are verified, whatever they cost
  int64_t context = 0;              // tokens before its rows
  std::span<const float> expected;  // [>= cap] survival by slot, from earlier steps
  std::span<const float> current;   // [available] survival by slot, of the drafts at hand
};

// What else the step holds.
struct StepOutlook {
  int64_t other_rows = 0;      // parts of prompts
  int64_t other_context = 0;   // tokens before them, summed over these rows
  int64_t max_draft_rows = 0;  // room for verified drafts
};

enum class SpeculationMode {
  kOff,    // plain decoding; nobody drafts
  kOn,     // drafts where they pay
  kProbe,  // a step for finding out: some draft while it is off, or none while it is on
};

struct VerifyPlan {
  SpeculationMode mode = SpeculationMode::kOff;
  int64_t capacity = 0;             // drafts worth verifying, by earlier steps
  int64_t draft_rows = 0;           // drafts verified
  int32_t width = 0;                // drafts per request worth proposing
  double gain = 1.0;                // predicted tokens per time, relative to plain decoding
  double predicted_ms = 0.0;        // of the forward pass
  double predicted_accepted = 0.0;  // drafts
};

class VerifyPlanner {
 public:
  VerifyPlanner(const PlannerOptions& options, const CostTable& costs);

  // Plans a step: lengths[r] drafts of offer r are verified, and if drafting[r], the request should
  // propose new ones behind it. The result is valid until the next call.
  const VerifyPlan& Plan(const StepOutlook& outlook, std::span<const DraftOffer> offers);
  std::span<const int32_t> lengths() const { return lengths_; }
  std::span<const uint8_t> drafting() const { return drafting_; }
  const VerifyPlan& plan() const { return plan_; }
  // Whether a request that the plan did not know (its prompt just ended) should draft.
  bool NewcomersDraft() const { return !options_.adaptive || mode_ == SpeculationMode::kOn; }

  // What the step took.
  void ObserveForward(const StepSize& size, double ms) { costs_.ObserveForward(size, ms); }
  void ObserveDraft(int64_t requests, int32_t width, double ms) {
    costs_.ObserveDraft(requests, width, ms);
  }
  const CostModel& costs() const { return costs_; }

 private:
  // A draft that may be verified.
  struct Candidate {
    float value = 0.0F;  // survival less the price of its context
    int32_t order = 0;   // of equal ones: by slot, then by request
    int32_t request = 0;
    float survival = 0.0F;
    int64_t context = 0;
  };
  struct Optimum {
    double rate = 0.0;      // tokens per millisecond
    int64_t capacity = 0;   // drafts verified
    double accepted = 0.0;  // of these
  };

  void PlanFixed(const StepOutlook& outlook, std::span<const DraftOffer> offers);
  void PlanAdaptive(const StepOutlook& outlook, std::span<const DraftOffer> offers);

  void CollectExpected(std::span<const DraftOffer> offers);
  Optimum Maximize(std::span<const DraftOffer> offers) const;
  Optimum ChooseDrafters(std::span<const DraftOffer> offers);
  void UpdateMode();
  void SetWidth(int64_t capacity);

  void PriceRows(int64_t capacity);
  void CollectCurrent(std::span<const DraftOffer> offers);
  void Allocate(int64_t room);
  void VerifyAll(int64_t room, std::span<const DraftOffer> offers);
  void VerifyPinned(int64_t room, std::span<const DraftOffer> offers);

  void SpendOnProbes(const StepOutlook& outlook, std::span<const DraftOffer> offers,
                     const Optimum& best);
  bool ProbeDrafting(std::span<const DraftOffer> offers);
  bool ProbePlainStep(const StepOutlook& outlook, std::span<const DraftOffer> offers,
                      const Optimum& best);
  bool ProbeAllDrafts(const StepOutlook& outlook, std::span<const DraftOffer> offers);
  bool Pay(double ms);

  int64_t NumDrafting() const;
  double MsOfDrafts(int64_t rows) const;  // that many more rows in a step of decodes

  const PlannerOptions options_;
  CostModel costs_;
  SpeculationMode mode_;
  VerifyPlan plan_;
  std::vector<int32_t> lengths_;   // [offers]
  std::vector<uint8_t> drafting_;  // [offers]

  double price_ = 0.0;  // of a millisecond, in tokens: what the better way of decoding yields
  int64_t capacity_ = 0;
  int32_t width_;
  int32_t disagreeing_steps_ = 0;
  int64_t num_steps_ = 0;
  double credit_ms_ = 0.0;  // time that probes may take
  int32_t steps_since_probe_ = 0;
  bool probing_drafts_ = false;  // the drafts at hand are those of a probe
  bool plain_probe_next_ = true;
  size_t next_probed_ = 0;

  std::vector<Candidate> expected_;  // falling
  std::vector<Candidate> current_;   // falling
  std::vector<double> decode_ms_;    // [K]: the decodes and K drafts, nothing else
  std::vector<double> row_ms_;       // [K]: the whole step with K drafts
  std::vector<double> prices_;       // [k]: what the draft in row k must be worth, in tokens
  std::vector<double> surplus_;      // [offers]
  std::vector<size_t> hull_;
};

}  // namespace fulgur::sched

// Speculative decoding in the engine: tells the scheduler how many drafts to verify, the drafter
// what became of them, and keeps the books.
//
// It goes through a step with the engine core: PlanDrafts (called by the scheduler), Settle for
// each sequence that had drafts, Continue for each that goes on, then Propose. Engine's thread.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "engine/active_request.h"
#include "engine/engine.h"
#include "engine/model_runner.h"
#include "sample/verifier.h"
#include "sched/scheduler.h"
#include "sched/survival_model.h"
#include "sched/verify_planner.h"

namespace fulgur::engine {

struct SpeculationOptions {
  int32_t num_drafts =
      0;                 // per request and step, at most the runner's MaxDrafts; 0: no speculation
  bool adaptive = true;  // false: always as many as possible
  sample::VerifyMethod verification = sample::VerifyMethod::kExactMatch;
  // Benchmarks only, never adaptive: draft k stands in a share synthetic_rates[k] of the rounds,
  // whatever the model says. The rates fall.
  std::vector<double> synthetic_rates = {};
  sched::CostTable costs = {};  // adaptive: measured before (MeasureCosts)

  bool enabled() const { return num_drafts > 0; }
};

// Errors name the option as the flag calls it. `max_drafts` is the runner's MaxDrafts.
absl::Status ValidateSpeculation(const SpeculationOptions& options, int64_t max_drafts);

// What became of one request's drafts in a step.
struct DraftRound {
  int32_t verified = 0;  // in the forward pass
  int32_t tested = 0;    // of these, up to the first that did not stand or ended the answer
  int32_t accepted = 0;  // of these, that stand
};

class Speculation : public sched::DraftPolicy {
 public:
  // The runner and the end-of-sequence tokens must outlive this.
  Speculation(const SpeculationOptions& options, ModelRunner& runner, sample::Verifier& verifier,
              std::span<const int32_t> eos_tokens);

  // Prepares a request. `max_drafts`: what it asks for; none: as the engine sees fit.
  void Admit(ActiveRequest& request, std::optional<int32_t> max_drafts);

  void PlanDrafts(const sched::StepOutlook& outlook,
                  std::span<sched::ScheduledChunk> decodes) override;

  // How many drafts of a round stand by decree; none outside of benchmarks.
  std::optional<int32_t> DecreedAcceptance(const ActiveRequest& request) const;
  // The draft in a row of the step, and the probabilities it was drawn from.
  sample::Draft DraftAt(const ActiveRequest& request, int32_t slot) const;

  // A decoding request's drafts are dealt with.
  void Settle(ActiveRequest& request, const DraftRound& round);
  // The request goes on; rows.num_drafts is filled in. `decodes`: its next step could verify
  // drafts.
  void Continue(ActiveRequest& request, const model::DraftRows& rows, bool decodes);
  // Tells the runner what Continue collected, and fetches new drafts.
  absl::Status Propose();

  void ObserveForward(const sched::StepPlan& plan, double ms);
  SpeculationStats Stats() const;

 private:
  class Chooser;

  std::span<float> ProbabilitiesAt(ActiveRequest& request, int32_t slot) const;
  int32_t DraftsWanted(const ActiveRequest& request) const;
  void TakeDrafts(size_t index, size_t first);
  float ConfidenceOf(float drafters, float gap) const;

  const SpeculationOptions options_;
  ModelRunner& runner_;
  sample::Verifier& verifier_;
  const std::span<const int32_t> eos_tokens_;
  sched::SurvivalModel model_;
  sched::VerifyPlanner planner_;
  std::vector<sched::DraftOffer> offers_;

  // Of the step that runs now.
  std::vector<ActiveRequest*> going_on_;
  std::vector<model::DraftRows> rows_;
  // By request and slot: how far the best token was ahead.
  std::vector<std::array<float, sched::kMaxDrafts>> gaps_;
  model::Drafts drafts_;

  SpeculationStats totals_;
};

}  // namespace fulgur::engine

#include "engine/speculation.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_format.h"
#include "base/check.h"
#include "base/status_macros.h"
#include "sample/order.h"

namespace fulgur::engine {
namespace {

SpeculationStats::Method MethodOf(model::DrafterKind kind) {
  switch (kind) {
    case model::DrafterKind::kMtp:
      return SpeculationStats::Method::kMtp;
    case model::DrafterKind::kDspark:
      return SpeculationStats::Method::kDspark;
    case model::DrafterKind::kNone:
      break;
  }
  return SpeculationStats::Method::kNone;
}

SpeculationStats::Mode ModeOf(sched::SpeculationMode mode) {
  switch (mode) {
    case sched::SpeculationMode::kOff:
      return SpeculationStats::Mode::kOff;
    case sched::SpeculationMode::kOn:
      return SpeculationStats::Mode::kOn;
    case sched::SpeculationMode::kProbe:
      break;
  }
  return SpeculationStats::Mode::kProbe;
}

double Milliseconds(Clock::duration duration) {
  return std::chrono::duration<double, std::milli>(duration).count();
}

}  // namespace

absl::Status ValidateSpeculation(const SpeculationOptions& options, int64_t max_drafts) {
  if (!options.enabled()) return absl::OkStatus();
  if (max_drafts == 0) {
    return absl::InvalidArgumentError(
        "--speculative-config asks for drafts, but no draft model is loaded");
  }
  if (options.num_drafts > std::min<int64_t>(max_drafts, sched::kMaxDrafts)) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "--speculative-config: num_speculative_tokens is %d, but this draft model makes at most %d",
        options.num_drafts, std::min<int64_t>(max_drafts, sched::kMaxDrafts)));
  }
  if (options.adaptive && !options.synthetic_rates.empty()) {
    return absl::InvalidArgumentError(
        "--speculative-config: synthetic acceptance needs \"adaptive\": false, since a plan could "
        "verify fewer drafts than are to be accepted");
  }
  if (options.adaptive && options.costs.forward.empty()) {
    return absl::InvalidArgumentError("adaptive speculation needs measured costs");
  }
  return absl::OkStatus();
}

// Draws draft tokens, and takes note of how sure the drafter was.
class Speculation::Chooser : public model::DraftChooser {
 public:
  explicit Chooser(Speculation& owner) : owner_(owner) {}

  int32_t Choose(int32_t index, int32_t slot, std::span<const float> logits) override {
    ActiveRequest& request = *owner_.going_on_[static_cast<size_t>(index)];
    auto& gaps = owner_.gaps_[static_cast<size_t>(index)];
    const std::span<float> probabilities = owner_.ProbabilitiesAt(request, slot);
    const auto token =
        owner_.verifier_.Propose(logits, request.Context(owner_.eos_tokens_), probabilities);
    // A drafter that computes nonsense is no reason to fail: its draft will not stand.
    const int32_t chosen = token.ok() ? *token : 0;
    if (!token.ok() && !probabilities.empty()) {
      std::fill(probabilities.begin(), probabilities.end(), 0.0F);
      probabilities[0] = 1.0F;
    }
    gaps[static_cast<size_t>(slot)] = token.ok() ? sample::TopGap(logits) : 0.0F;
    request.tokens.push_back(chosen);  // for the next slot; Propose takes it away again
    return chosen;
  }

 private:
  Speculation& owner_;
};

Speculation::Speculation(const SpeculationOptions& options, ModelRunner& runner,
                         sample::Verifier& verifier, std::span<const int32_t> eos_tokens)
    : options_(options),
      runner_(runner),
      verifier_(verifier),
      eos_tokens_(eos_tokens),
      planner_({.max_drafts = options.num_drafts, .adaptive = options.adaptive}, options.costs) {
  totals_.method = MethodOf(runner.drafter());
  totals_.adaptive = options.adaptive;
  totals_.num_drafts = options.num_drafts;
}

void Speculation::Admit(ActiveRequest& request, std::optional<int32_t> max_drafts) {
  DraftState& state = request.drafting;
  state.limit = std::clamp(max_drafts.value_or(options_.num_drafts), 0, options_.num_drafts);
  const bool needs_probabilities = verifier_.NeedsProbabilities(request.params);
  state.pinned = needs_probabilities && request.params.seed.has_value();
  state.survival.emplace(model_);
  if (!needs_probabilities) return;
  state.probabilities.resize(static_cast<size_t>(state.limit * runner_.VocabSize()));
}

std::span<float> Speculation::ProbabilitiesAt(ActiveRequest& request, int32_t slot) const {
  if (request.drafting.probabilities.empty()) return {};
  const auto width = static_cast<size_t>(runner_.VocabSize());
  return std::span(request.drafting.probabilities)
      .subspan(static_cast<size_t>(slot) * width, width);
}

// ---- before the forward pass ----

void Speculation::PlanDrafts(const sched::StepOutlook& outlook,
                             std::span<sched::ScheduledChunk> decodes) {
  offers_.clear();
  for (const sched::ScheduledChunk& chunk : decodes) {
    const ActiveRequest& request = RequestOf(*chunk.sequence);
    const auto room = std::max<int64_t>(0, request.max_length - 1 - request.length());
    const std::span<const float> current = request.drafting.survival->current();
    const auto at_hand = static_cast<int64_t>(std::min(current.size(), request.drafts.size()));
    offers_.push_back({.available = static_cast<int32_t>(std::min(room, at_hand)),
                       .cap = static_cast<int32_t>(std::min<int64_t>(room, request.drafting.limit)),
                       .pinned = request.drafting.pinned,
                       .context = chunk.first_position,
                       .expected = request.drafting.survival->expected(),
                       .current = current});
  }
  const sched::VerifyPlan& plan = planner_.Plan(outlook, offers_);
  for (size_t i = 0; i < decodes.size(); ++i) {
    decodes[i].num_drafts = planner_.lengths()[i];
    RequestOf(*decodes[i].sequence).drafting.wanted = planner_.drafting()[i] != 0;
  }
  if (decodes.empty()) return;
  totals_.mode = ModeOf(plan.mode);
  totals_.gain = plan.gain;
  totals_.planned_tokens += plan.capacity;
  totals_.predicted_accepted += plan.predicted_accepted;
  ++totals_.steps[static_cast<size_t>(totals_.mode)];
}

// ---- after it ----

void Speculation::ObserveForward(const sched::StepPlan& plan, double ms) {
  sched::StepSize size{.rows = plan.num_tokens};
  for (const sched::ScheduledChunk& chunk : plan.chunks) {
    size.context += chunk.num_rows() * (chunk.first_position + chunk.num_rows() / 2);
    size.drafts += chunk.num_drafts;
  }
  totals_.predicted_forward_seconds += planner_.costs().Forward(size) / 1e3;
  totals_.forward_seconds += ms / 1e3;
  planner_.ObserveForward(size, ms);
}

std::optional<int32_t> Speculation::DecreedAcceptance(const ActiveRequest& request) const {
  if (options_.synthetic_rates.empty()) return std::nullopt;
  return sample::SyntheticAcceptance(options_.synthetic_rates, request.seed, request.length());
}

sample::Draft Speculation::DraftAt(const ActiveRequest& request, int32_t slot) const {
  const auto& probabilities = request.drafting.probabilities;
  const auto width = static_cast<size_t>(runner_.VocabSize());
  const auto place = static_cast<size_t>(slot);
  return {.token = request.drafts[place],
          .probabilities = probabilities.empty()
                               ? std::span<const float>()
                               : std::span(probabilities).subspan(place * width, width)};
}

void Speculation::Settle(ActiveRequest& request, const DraftRound& round) {
  sched::RequestSurvival& survival = *request.drafting.survival;
  if (survival.current().empty()) {
    ++totals_.undrafted_rounds;
    survival.Fade(model_);
  } else {
    survival.Settle(model_, round.tested, round.accepted);
  }
  request.drafts.clear();
  if (round.verified == 0) return;
  ++totals_.rounds;
  totals_.verified_tokens += round.verified;
  totals_.accepted_tokens += round.accepted;
  totals_.discarded_tokens += round.verified - round.tested;
  for (int32_t slot = 0; slot < round.verified; ++slot) {
    ++totals_.verified_per_slot[static_cast<size_t>(slot)];
    if (slot < round.accepted) ++totals_.accepted_per_slot[static_cast<size_t>(slot)];
  }
}

void Speculation::Continue(ActiveRequest& request, const model::DraftRows& rows, bool decodes) {
  // Who never has drafts needs no context for them.
  if (request.drafting.limit == 0) return;
  going_on_.push_back(&request);
  rows_.push_back(rows);
  rows_.back().num_drafts = decodes ? DraftsWanted(request) : 0;
}

int32_t Speculation::DraftsWanted(const ActiveRequest& request) const {
  const bool newcomer = request.num_computed == request.num_prompt_tokens;
  const bool wanted = newcomer ? planner_.NewcomersDraft() : request.drafting.wanted;
  if (!wanted) return 0;
  const int64_t room = std::max<int64_t>(0, request.max_length - 1 - request.length());
  const int32_t width = request.drafting.pinned ? options_.num_drafts : planner_.plan().width;
  return static_cast<int32_t>(std::min<int64_t>(room, std::min(width, request.drafting.limit)));
}

absl::Status Speculation::Propose() {
  gaps_.resize(std::max(gaps_.size(), rows_.size()));
  Chooser chooser(*this);
  const Clock::time_point start = Clock::now();
  RETURN_IF_ERROR(runner_.Propose(rows_, chooser, drafts_));
  const double ms = Milliseconds(Clock::now() - start);
  size_t next = 0;
  int64_t drafting = 0;
  for (size_t i = 0; i < rows_.size(); ++i) {
    if (rows_[i].num_drafts == 0) continue;
    ++drafting;
    TakeDrafts(i, next);
    next += static_cast<size_t>(rows_[i].num_drafts);
  }
  CHECK_EQ(next, drafts_.tokens.size());
  if (drafting > 0) planner_.ObserveDraft(drafting, planner_.plan().width, ms);
  totals_.draft_seconds += ms / 1e3;
  totals_.proposed_tokens += static_cast<int64_t>(next);
  going_on_.clear();
  rows_.clear();
  return absl::OkStatus();
}

// Drafts [first, ...) of the runner's belong to rows_[index].
void Speculation::TakeDrafts(size_t index, size_t first) {
  ActiveRequest& request = *going_on_[index];
  const auto count = static_cast<size_t>(rows_[index].num_drafts);
  request.tokens.resize(request.tokens.size() - count);
  const auto begin = drafts_.tokens.begin() + static_cast<int64_t>(first);
  request.drafts.assign(begin, begin + static_cast<int64_t>(count));
  std::array<float, sched::kMaxDrafts> confidence;
  for (size_t slot = 0; slot < count; ++slot) {
    confidence[slot] = ConfidenceOf(drafts_.confidence[first + slot], gaps_[index][slot]);
  }
  request.drafting.survival->Offer(model_, std::span(confidence).first(count));
}

// Without a confidence head: how far the best token is ahead of the second. Unlike the chance of
// the token that was drawn, that tells nothing of the draw, which would bias sampled text.
float Speculation::ConfidenceOf(float drafters, float gap) const {
  if (runner_.drafter() == model::DrafterKind::kDspark) return drafters;
  return 1.0F / (1.0F + std::exp(-gap));
}

SpeculationStats Speculation::Stats() const {
  SpeculationStats stats = totals_;
  for (int32_t slot = 0; slot < options_.num_drafts; ++slot) {
    stats.calibration_error[static_cast<size_t>(slot)] = model_.CalibrationError(slot);
  }
  return stats;
}

}  // namespace fulgur::engine

#include "sched/verify_planner.h"

#include <algorithm>
#include <numeric>

#include "base/check.h"

namespace fulgur::sched {
namespace {

// A capacity below the last one must promise that much more: no flapping between equal plans.
constexpr double kStay = 1.01;
constexpr int32_t kStepsBetweenProbes = 16;
constexpr double kDearestProbe = 8.0;  // in plain steps
constexpr double kMaxCredit = 4.0;     // steps' worth of probing that may be saved up
// Steps before drafting is switched off for the first time: until then costs and chances are known
// from nothing but idle measurements.
constexpr int32_t kFirstSteps = 48;

template <typename Candidate>
bool Before(const Candidate& a, const Candidate& b) {
  return a.value > b.value || (a.value == b.value && a.order < b.order);
}

int64_t ContextOf(std::span<const DraftOffer> offers) {
  return std::accumulate(offers.begin(), offers.end(), int64_t{0},
                         [](int64_t sum, const DraftOffer& offer) { return sum + offer.context; });
}

}  // namespace

VerifyPlanner::VerifyPlanner(const PlannerOptions& options, const CostTable& costs)
    : options_(options), costs_(costs), mode_(SpeculationMode::kOn), width_(options.max_drafts) {
  CHECK_GE(options.max_drafts, 1);
  CHECK_LE(options.max_drafts, kMaxDrafts);
  CHECK(!options.adaptive || !costs.forward.empty());
}

const VerifyPlan& VerifyPlanner::Plan(const StepOutlook& outlook,
                                      std::span<const DraftOffer> offers) {
  plan_ = {};
  lengths_.assign(offers.size(), 0);
  drafting_.assign(offers.size(), 0);
  for (size_t i = 0; i < offers.size(); ++i) drafting_[i] = offers[i].cap > 0 ? 1 : 0;
  if (options_.adaptive) {
    PlanAdaptive(outlook, offers);
  } else {
    PlanFixed(outlook, offers);
  }
  int64_t context = outlook.other_context;
  for (size_t i = 0; i < offers.size(); ++i) {
    plan_.draft_rows += lengths_[i];
    context += offers[i].context * (1 + lengths_[i]);
    for (int32_t slot = 0; slot < lengths_[i]; ++slot) {
      plan_.predicted_accepted += offers[i].current[static_cast<size_t>(slot)];
    }
  }
  const auto decodes = static_cast<int64_t>(offers.size());
  plan_.predicted_ms = costs_.Forward({.rows = decodes + outlook.other_rows + plan_.draft_rows,
                                       .context = context,
                                       .drafts = plan_.draft_rows});
  return plan_;
}

void VerifyPlanner::PlanFixed(const StepOutlook& outlook, std::span<const DraftOffer> offers) {
  plan_.mode = SpeculationMode::kOn;
  plan_.width = options_.max_drafts;
  VerifyAll(outlook.max_draft_rows, offers);
  plan_.capacity = std::accumulate(lengths_.begin(), lengths_.end(), int64_t{0});
}

void VerifyPlanner::PlanAdaptive(const StepOutlook& outlook, std::span<const DraftOffer> offers) {
  plan_.mode = mode_;
  plan_.width = width_;
  if (offers.empty()) return;
  CollectExpected(offers);
  decode_ms_.resize(expected_.size() + 1);
  const auto decodes = static_cast<int64_t>(offers.size());
  costs_.FillForward(decodes, decode_ms_);
  const double base_context_ms = costs_.ContextTokenMs() * static_cast<double>(ContextOf(offers));
  for (double& ms : decode_ms_) ms += base_context_ms;
  const double plain_rate = static_cast<double>(decodes) / decode_ms_[0];
  const Optimum best = ChooseDrafters(offers);
  plan_.gain = best.rate / plain_rate;
  price_ = std::max(best.rate, plain_rate);
  capacity_ = best.capacity;
  plan_.capacity = best.capacity;
  UpdateMode();
  plan_.mode = mode_;

  const int64_t room = outlook.max_draft_rows;
  if (probing_drafts_) {
    VerifyAll(room, offers);
  } else {
    CollectCurrent(offers);
    row_ms_.resize(current_.size() + 1);
    costs_.FillForward(decodes + outlook.other_rows, row_ms_);
    PriceRows(best.capacity);
    VerifyPinned(room, offers);
    Allocate(room);
  }
  SetWidth(best.capacity);
  if (mode_ == SpeculationMode::kOff) std::fill(drafting_.begin(), drafting_.end(), uint8_t{0});
  probing_drafts_ = false;
  SpendOnProbes(outlook, offers, best);
}

// ---- what earlier steps promise ----

void VerifyPlanner::CollectExpected(std::span<const DraftOffer> offers) {
  expected_.clear();
  const double context_price = price_ * costs_.ContextTokenMs();
  const auto stride = static_cast<int32_t>(offers.size());
  for (size_t i = 0; i < offers.size(); ++i) {
    const DraftOffer& offer = offers[i];
    const auto price = static_cast<float>(context_price * static_cast<double>(offer.context));
    for (int32_t slot = 0; slot < std::min(offer.cap, options_.max_drafts); ++slot) {
      const float survival = offer.expected[static_cast<size_t>(slot)];
      const auto request = static_cast<int32_t>(i);
      expected_.push_back({.value = survival - price,
                           .order = slot * stride + request,
                           .request = request,
                           .survival = survival,
                           .context = offer.context});
    }
  }
  std::sort(expected_.begin(), expected_.end(), Before<Candidate>);
}

int64_t VerifyPlanner::NumDrafting() const {
  return std::count(drafting_.begin(), drafting_.end(), uint8_t{1});
}

// Every number of drafts is looked at: the curve may have many hills.
VerifyPlanner::Optimum VerifyPlanner::Maximize(std::span<const DraftOffer> offers) const {
  const auto decodes = static_cast<double>(offers.size());
  const double draft_ms = costs_.Draft(NumDrafting(), width_);
  const double token_ms = costs_.ContextTokenMs();
  Optimum best{.rate = decodes / (decode_ms_[0] + draft_ms)};
  Optimum last;  // with the capacity of the step before
  double accepted = 0.0;
  double context_ms = 0.0;
  int64_t rows = 0;
  for (const Candidate& candidate : expected_) {
    if (drafting_[static_cast<size_t>(candidate.request)] == 0) continue;
    accepted += candidate.survival;
    context_ms += token_ms * static_cast<double>(candidate.context);
    ++rows;
    const double ms = decode_ms_[static_cast<size_t>(rows)] + draft_ms + context_ms;
    const Optimum here{(decodes + accepted) / ms, rows, accepted};
    if (here.rate > best.rate) best = here;
    if (rows == capacity_) last = here;
  }
  return best.capacity < capacity_ && best.rate < last.rate * kStay ? last : best;
}

// Leaves out requests whose drafts do not pay for being made.
VerifyPlanner::Optimum VerifyPlanner::ChooseDrafters(std::span<const DraftOffer> offers) {
  const Optimum with_all = Maximize(offers);
  const int64_t all = NumDrafting();
  if (all < 2 || with_all.capacity == 0) return with_all;
  const double row_price = with_all.rate *
                           (decode_ms_[static_cast<size_t>(with_all.capacity)] - decode_ms_[0]) /
                           static_cast<double>(with_all.capacity);
  surplus_.assign(offers.size(), 0.0);
  for (const Candidate& candidate :
       std::span(expected_).first(static_cast<size_t>(with_all.capacity))) {
    surplus_[static_cast<size_t>(candidate.request)] += candidate.value - row_price;
  }
  const double share = with_all.rate * (costs_.Draft(all, width_) - costs_.Draft(all - 1, width_));
  for (size_t i = 0; i < offers.size(); ++i) {
    if (surplus_[i] < share && !offers[i].pinned) drafting_[i] = 0;
  }
  const int64_t some = NumDrafting();
  if (some == all) return with_all;
  const Optimum with_some = some > 0 ? Maximize(offers) : Optimum{};
  if (with_some.rate >= with_all.rate) return with_some;
  for (size_t i = 0; i < offers.size(); ++i) drafting_[i] = offers[i].cap > 0 ? 1 : 0;
  return with_all;
}

void VerifyPlanner::UpdateMode() {
  const bool on = mode_ == SpeculationMode::kOn;
  const bool disagrees = on ? plan_.gain < 1.0 : plan_.gain > 1.0 + options_.entry_gain;
  disagreeing_steps_ = disagrees ? disagreeing_steps_ + 1 : 0;
  if (++num_steps_ < kFirstSteps) return;
  if (disagreeing_steps_ < options_.patience) return;
  disagreeing_steps_ = 0;
  mode_ = on ? SpeculationMode::kOff : SpeculationMode::kOn;
}

// One more than anybody is expected to use, so that what is not made can still become wanted.
void VerifyPlanner::SetWidth(int64_t capacity) {
  surplus_.assign(lengths_.size(), 0.0);
  double longest = 0.0;
  for (const Candidate& candidate : expected_) {
    if (capacity == 0) break;
    if (drafting_[static_cast<size_t>(candidate.request)] == 0) continue;
    --capacity;
    longest = std::max(longest, ++surplus_[static_cast<size_t>(candidate.request)]);
  }
  const int32_t used = *std::max_element(lengths_.begin(), lengths_.end());
  width_ = std::min(options_.max_drafts, std::max(static_cast<int32_t>(longest), used) + 1);
  plan_.width = width_;
}

// ---- who gets the rows ----

// Row k up to the capacity must be worth the cheapest way of going on from it: stopping short of a
// flat stretch of the curve wastes what is paid for. Behind the capacity each row must be worth the
// dearest way that has led there.
void VerifyPlanner::PriceRows(int64_t capacity) {
  const size_t end = row_ms_.size() - 1;
  const size_t planned = std::min(static_cast<size_t>(capacity), end);
  prices_.assign(end, 0.0);
  const auto slope = [this](size_t from, size_t to) {
    return (row_ms_[to] - row_ms_[from]) / static_cast<double>(to - from);
  };
  hull_.assign(1, planned);
  for (size_t k = planned; k-- > 0;) {
    while (hull_.size() > 1 &&
           slope(k, hull_.back()) >= slope(hull_.back(), hull_[hull_.size() - 2])) {
      hull_.pop_back();
    }
    prices_[k] = price_ * slope(k, hull_.back());
    hull_.push_back(k);
  }
  double dearest = 0.0;
  for (size_t k = planned; k < end; ++k) {
    dearest = std::max(dearest, slope(planned, k + 1));
    prices_[k] = price_ * dearest;
  }
}

void VerifyPlanner::CollectCurrent(std::span<const DraftOffer> offers) {
  current_.clear();
  const double context_price = price_ * costs_.ContextTokenMs();
  const auto stride = static_cast<int32_t>(offers.size());
  for (size_t i = 0; i < offers.size(); ++i) {
    const DraftOffer& offer = offers[i];
    if (offer.pinned) continue;
    const auto price = static_cast<float>(context_price * static_cast<double>(offer.context));
    for (int32_t slot = 0; slot < offer.available; ++slot) {
      const float survival = offer.current[static_cast<size_t>(slot)];
      const auto request = static_cast<int32_t>(i);
      current_.push_back({.value = survival - price,
                          .order = slot * stride + request,
                          .request = request,
                          .survival = survival,
                          .context = offer.context});
    }
  }
}

void VerifyPlanner::Allocate(int64_t room) {
  if (prices_.empty()) return;
  // What is below every price is not worth sorting.
  const auto least = static_cast<float>(*std::min_element(prices_.begin(), prices_.end()));
  std::erase_if(current_, [least](const Candidate& c) { return c.value < least; });
  std::sort(current_.begin(), current_.end(), Before<Candidate>);
  const auto taken = std::accumulate(lengths_.begin(), lengths_.end(), int64_t{0});
  for (size_t k = 0; k < current_.size() && static_cast<int64_t>(k) + taken < room; ++k) {
    if (current_[k].value < prices_[k]) break;
    ++lengths_[static_cast<size_t>(current_[k].request)];
  }
}

// Slot by slot, so that little room is shared fairly.
void VerifyPlanner::VerifyAll(int64_t room, std::span<const DraftOffer> offers) {
  std::fill(lengths_.begin(), lengths_.end(), 0);
  for (int32_t slot = 0; slot < kMaxDrafts; ++slot) {
    for (size_t i = 0; i < offers.size() && room > 0; ++i) {
      if (slot >= offers[i].available) continue;
      ++lengths_[i];
      --room;
    }
  }
}

void VerifyPlanner::VerifyPinned(int64_t room, std::span<const DraftOffer> offers) {
  for (size_t i = 0; i < offers.size(); ++i) {
    if (!offers[i].pinned) continue;
    lengths_[i] = static_cast<int32_t>(std::min<int64_t>(offers[i].available, room));
    room -= lengths_[i];
  }
}

// ---- finding out ----

double VerifyPlanner::MsOfDrafts(int64_t rows) const {
  const auto last = static_cast<int64_t>(decode_ms_.size()) - 1;
  return decode_ms_[static_cast<size_t>(std::min(rows, last))] - decode_ms_[0];
}

bool VerifyPlanner::Pay(double ms) {
  if (credit_ms_ < ms) return false;
  credit_ms_ -= ms;
  steps_since_probe_ = 0;
  plan_.mode = SpeculationMode::kProbe;
  return true;
}

void VerifyPlanner::SpendOnProbes(const StepOutlook& outlook, std::span<const DraftOffer> offers,
                                  const Optimum& best) {
  const double step_ms = decode_ms_[0] + MsOfDrafts(best.capacity);
  credit_ms_ += options_.probe_share * step_ms;
  if (++steps_since_probe_ < kStepsBetweenProbes) return;
  if (mode_ == SpeculationMode::kOff) {
    ProbeDrafting(offers);
    return;
  }
  const bool probed =
      plain_probe_next_ ? ProbePlainStep(outlook, offers, best) : ProbeAllDrafts(outlook, offers);
  if (probed) plain_probe_next_ = !plain_probe_next_;
  credit_ms_ = std::min(credit_ms_, kMaxCredit * step_ms);
}

// A quarter of the requests draft for one step, and all of it is verified.
bool VerifyPlanner::ProbeDrafting(std::span<const DraftOffer> offers) {
  const auto could = std::count_if(offers.begin(), offers.end(),
                                   [](const DraftOffer& offer) { return offer.cap > 0; });
  const int64_t wanted = (could + 3) / 4;
  if (wanted == 0) return false;
  const int32_t width = options_.max_drafts;
  // Bounded, so that a cost which was measured far too high is found out some day.
  const double ms = costs_.Draft(wanted, width) + MsOfDrafts(wanted * width);
  if (!Pay(std::min(ms, kDearestProbe * decode_ms_[0]))) return false;
  for (int64_t left = wanted; left > 0; ++next_probed_) {
    const size_t i = next_probed_ % offers.size();
    if (offers[i].cap == 0) continue;
    drafting_[i] = 1;
    --left;
  }
  plan_.width = width;
  probing_drafts_ = true;
  return true;
}

// One step without drafts, since drafting is judged by what such a step costs. Also counts as done
// if the step has none anyway.
bool VerifyPlanner::ProbePlainStep(const StepOutlook& outlook, std::span<const DraftOffer> offers,
                                   const Optimum& best) {
  const auto planned = std::accumulate(lengths_.begin(), lengths_.end(), int64_t{0});
  if (planned == 0) return true;
  const double lost_ms = best.accepted / price_ - MsOfDrafts(best.capacity);
  if (!Pay(std::max(0.0, lost_ms))) return false;
  std::fill(lengths_.begin(), lengths_.end(), 0);
  VerifyPinned(outlook.max_draft_rows, offers);
  return true;
}

// One step with all drafts, also those that nobody would try.
bool VerifyPlanner::ProbeAllDrafts(const StepOutlook& outlook, std::span<const DraftOffer> offers) {
  const auto planned = std::accumulate(lengths_.begin(), lengths_.end(), int64_t{0});
  const auto all =
      std::accumulate(offers.begin(), offers.end(), int64_t{0},
                      [](int64_t sum, const DraftOffer& offer) { return sum + offer.available; });
  if (planned == all) return true;
  if (!Pay(MsOfDrafts(all) - MsOfDrafts(planned))) return false;
  VerifyAll(outlook.max_draft_rows, offers);
  return true;
}

}  // namespace fulgur::sched

#include "sched/cost_model.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace fulgur::sched {
namespace {

// Single steps may be far off: the thread lost its core. They count as at most twice or half.
constexpr double kLargestError = 0.7;
constexpr double kDriftRate = 0.15;
constexpr double kSteadyRate = 0.05;  // of a point that is visited in every step
constexpr double kFreshRate = 0.5;    // of one that was not visited for long
constexpr double kFirstVisits = 4.0;  // what the measurement at start-up is worth
constexpr double kForgetVisits = 0.98;
constexpr double kFarthest = 4.0;
constexpr double kBeyond = 1.5;

double LogError(double measured, double predicted) {
  return std::clamp(std::log(measured / predicted), -kLargestError, kLargestError);
}

}  // namespace

CostCurve::CostCurve(const std::vector<CostPoint>& points) {
  double highest = 0.0;
  for (const CostPoint& point : points) {
    CHECK(points_.empty() || point.size > points_.back().size);
    highest = std::max(highest, point.ms);
    points_.push_back(
        {.size = point.size, .ms = highest, .first_ms = highest, .visits = kFirstVisits});
  }
}

size_t CostCurve::SegmentOf(double size) const {
  size_t right = 1;
  while (right + 1 < points_.size() && points_[right].size < size) ++right;
  return right;
}

double CostCurve::At(double size) const {
  if (points_.empty()) return 0.0;
  if (points_.size() == 1 || size <= points_[0].size) return points_[0].ms;
  const size_t right = SegmentOf(size);
  const Point& a = points_[right - 1];
  const Point& b = points_[right];
  return a.ms + (b.ms - a.ms) * (size - a.size) / (b.size - a.size);
}

void CostCurve::Fill(int64_t first, std::vector<double>& out) const {
  size_t i = 0;
  while (i < out.size()) {
    const auto size = static_cast<double>(first) + static_cast<double>(i);
    if (points_.size() < 2 || size <= points_[0].size) {
      out[i++] = At(size);
      continue;
    }
    const size_t right = SegmentOf(size);
    const double end = right + 1 == points_.size()
                           ? static_cast<double>(first) + static_cast<double>(out.size())
                           : points_[right].size;
    const double slope = (points_[right].ms - points_[right - 1].ms) /
                         (points_[right].size - points_[right - 1].size);
    double value = At(size);
    for (double at = size; at <= end && i < out.size(); at += 1.0, value += slope) out[i++] = value;
  }
}

void CostCurve::Move(Point& point, double log_error, double weight) {
  const double rate = std::max(kSteadyRate, kFreshRate / (1.0 + point.visits));
  point.ms = std::clamp(point.ms * std::exp(rate * weight * log_error), point.first_ms / kFarthest,
                        point.first_ms * kFarthest);
  point.visits += weight;
}

void CostCurve::Correct(double size, double log_error) {
  if (points_.empty()) return;
  for (Point& point : points_) point.visits *= kForgetVisits;
  if (points_.size() == 1 || size <= points_[0].size) return Move(points_[0], log_error, 1.0);
  const size_t right = SegmentOf(size);
  Point& a = points_[right - 1];
  Point& b = points_[right];
  const double share = std::min(1.0, (size - a.size) / (b.size - a.size));
  Move(a, log_error, 1.0 - share);
  Move(b, log_error, share);
}

CostModel::CostModel(const CostTable& table)
    : forward_(table.forward),
      ms_saved_per_draft_(table.ms_saved_per_draft),
      ms_per_context_token_(table.ms_per_context_token),
      draft_one_(table.draft_one),
      draft_full_(table.draft_full),
      max_drafts_(table.max_drafts) {}

double CostModel::Forward(const StepSize& size) const {
  const double rows_ms = forward_.At(static_cast<double>(size.rows));
  // More rows never cost less, whatever is saved.
  const double least = forward_.At(static_cast<double>(size.rows - size.drafts));
  const double saved = ms_saved_per_draft_ * static_cast<double>(size.drafts);
  return drift_ * (std::max(least, rows_ms - saved) +
                   ms_per_context_token_ * static_cast<double>(size.context));
}

void CostModel::FillForward(int64_t first, std::vector<double>& out) const {
  forward_.Fill(first, out);
  double saved = 0.0;
  double before = 0.0;
  for (double& ms : out) {
    ms = std::max(before, drift_ * (ms - saved));
    before = ms;
    saved += ms_saved_per_draft_;
  }
}

double CostModel::ShareOfFull(int32_t width) const {
  return max_drafts_ <= 1 ? 1.0 : static_cast<double>(width - 1) / (max_drafts_ - 1);
}

double CostModel::Draft(int64_t requests, int32_t width) const {
  if (requests == 0 || width == 0) return 0.0;
  const auto size = static_cast<double>(requests);
  const double one = draft_one_.At(size);
  return drift_ * (one + (draft_full_.At(size) - one) * ShareOfFull(width));
}

void CostModel::ObserveForward(const StepSize& size, double ms) {
  const double predicted = Forward(size);
  if (!(ms > 0.0) || !(predicted > 0.0)) return;
  const auto rows = static_cast<double>(size.rows);
  if (rows > kBeyond * forward_.largest_size()) return;
  const double error = LogError(ms, predicted);
  const double of_context = ContextTokenMs() * static_cast<double>(size.context) / predicted;
  drift_ *= std::exp(kDriftRate * error);
  forward_.Correct(rows, error * (1.0 - of_context));
  ms_per_context_token_ *= std::exp(kSteadyRate * error * of_context);
}

void CostModel::ObserveDraft(int64_t requests, int32_t width, double ms) {
  const double predicted = Draft(requests, width);
  if (!(ms > 0.0) || !(predicted > 0.0)) return;
  // The drift is left to the forward pass, which every step has.
  const double error = LogError(ms, predicted);
  const double share = ShareOfFull(width);
  draft_one_.Correct(static_cast<double>(requests), error * (1.0 - share));
  draft_full_.Correct(static_cast<double>(requests), error * share);
}

}  // namespace fulgur::sched

// What a step costs, in milliseconds: curves measured at start-up and corrected by every step.
//
// Curves are not assumed to be smooth: kernels have tiles, and more rows touch more experts. Each
// measured size is corrected on its own, and one factor for all follows the machine (heat,
// neighbours), so that sizes which are not visited keep their place among the others.
// Plain numbers; one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace fulgur::sched {

struct CostPoint {
  double size = 0.0;
  double ms = 0.0;
};

// Milliseconds over a size: straight lines between measured points, and on behind the last.
class CostCurve {
 public:
  // Sizes ascending, times positive; times that fall with the size are taken for noise and raised.
  explicit CostCurve(const std::vector<CostPoint>& points);

  double At(double size) const;
  double largest_size() const { return points_.empty() ? 0.0 : points_.back().size; }
  // Values at first, first + 1, ... into `out`; faster than as many calls.
  void Fill(int64_t first, std::vector<double>& out) const;

  // Moves the points around `size` by an error (logarithm of measured / predicted). A point that
  // was not visited for long moves further. None leaves [1/4, 4] times what was measured first.
  void Correct(double size, double log_error);

 private:
  struct Point {
    double size = 0.0;
    double ms = 0.0;
    double first_ms = 0.0;
    double visits = 0.0;  // of late
  };

  size_t SegmentOf(double size) const;  // index of the right end
  void Move(Point& point, double log_error, double weight);

  std::vector<Point> points_;
};

// A forward pass.
struct StepSize {
  int64_t rows = 0;
  int64_t context = 0;  // of all rows: the tokens before each, summed up
  int64_t drafts = 0;   // rows that verify drafts
};

// As measured at start-up. An empty one predicts nothing.
struct CostTable {
  std::vector<CostPoint> forward;  // over the rows of a step, each of a sequence of its own
  // Rows of one sequence read the same window: what a draft costs less than a sequence more.
  double ms_saved_per_draft = 0.0;
  double ms_per_context_token = 0.0;
  // Over the number of requests that get drafts; empty: drafts cost nothing.
  std::vector<CostPoint> draft_one;   // one draft each
  std::vector<CostPoint> draft_full;  // max_drafts each
  int32_t max_drafts = 1;
};

class CostModel {
 public:
  explicit CostModel(const CostTable& table);

  double Forward(const StepSize& size) const;
  // Into `out`: passes without context over `first` rows and 0, 1, 2, ... drafts.
  void FillForward(int64_t first, std::vector<double>& out) const;
  double ContextTokenMs() const { return drift_ * ms_per_context_token_; }
  // Drafting `width` tokens for each of `requests`.
  double Draft(int64_t requests, int32_t width) const;

  // Steps far beyond what was measured (long prompts) teach nothing of those with drafts.
  void ObserveForward(const StepSize& size, double ms);
  void ObserveDraft(int64_t requests, int32_t width, double ms);

 private:
  double ShareOfFull(int32_t width) const;

  CostCurve forward_;
  double ms_saved_per_draft_;
  double ms_per_context_token_;
  CostCurve draft_one_;
  CostCurve draft_full_;
  int32_t max_drafts_;
  double drift_ = 1.0;  // of all costs
};

}  // namespace fulgur::sched

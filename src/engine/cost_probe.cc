#include "engine/cost_probe.h"

#include <algorithm>
#include <map>
#include <vector>

#include "base/status_macros.h"
#include "kv/layout.h"
#include "sample/noise.h"
#include "sample/order.h"

namespace fulgur::engine {
namespace {

constexpr size_t kRepeats = 3;
constexpr size_t kMostRepeats = 50;
constexpr double kLeastMs = 10.0;  // short steps are repeated for that long: more is in their way
constexpr int64_t kLongContext = 8192;
constexpr int64_t kWindow = 128;  // of all published checkpoints: rows shall have it to read

double Milliseconds(Clock::duration duration) {
  return std::chrono::duration<double, std::milli>(duration).count();
}

class Chooser : public model::DraftChooser {
  int32_t Choose(int32_t, int32_t, std::span<const float> logits) override {
    return sample::ArgMax(logits);
  }
};

class Probe {
 public:
  Probe(const CoreOptions& options, ModelRunner& runner, std::chrono::milliseconds budget)
      : options_(options), runner_(runner), end_(Clock::now() + budget) {}

  absl::StatusOr<sched::CostTable> Measure();

 private:
  // A step of `rows` rows, shared among `sequences`; every row reads `context` tokens.
  // Milliseconds.
  absl::StatusOr<double> TimeForward(int64_t rows, int64_t sequences, int64_t context);
  // Behind a full window, if a page has room for it.
  absl::StatusOr<double> TimeForward(int64_t rows, int64_t sequences) {
    const int64_t last = std::min(kv::kPageTokens, options_.limits.max_model_len - 1);
    const int64_t longest = (rows + sequences - 1) / sequences;
    return TimeForward(rows, sequences, std::clamp<int64_t>(last - longest, 0, kWindow));
  }
  // One row per sequence, as far as there are sequences.
  absl::StatusOr<double> TimeForward(int64_t rows) {
    return TimeForward(rows, std::min(rows, MaxSequences()));
  }
  // The drafting behind a step of one row of each of `requests`.
  absl::StatusOr<double> TimeDrafts(int64_t requests, int32_t width);

  void BuildBatch(int64_t rows, int64_t num_sequences, int64_t context);
  int64_t MaxSequences() const {
    return std::min({options_.limits.max_num_seqs, options_.num_slots, options_.num_pages});
  }
  int64_t MaxRows() const;
  bool HasTime() const { return Clock::now() < end_; }

  // The fastest of a few: on a busy machine the others were disturbed.
  template <typename Time>
  absl::StatusOr<double> Fastest(Time time);
  absl::Status MeasureForward(sched::CostTable& table);
  absl::Status MeasureDraftRows(sched::CostTable& table);
  absl::Status MeasureContext(sched::CostTable& table);
  absl::Status MeasureDrafts(sched::CostTable& table);

  const CoreOptions& options_;
  ModelRunner& runner_;
  const Clock::time_point end_;
  std::vector<std::vector<model::PageId>> pages_;
  std::vector<int32_t> tokens_;
  std::vector<model::SequenceRows> sequences_;
  std::vector<float> logits_;
};

// 1, 2, 3, 4, 6, 8, 12, 16, 24, ... and the last.
std::vector<int64_t> Sizes(int64_t last) {
  std::vector<int64_t> sizes;
  for (int64_t size = 1; size < last; size += std::max<int64_t>(1, size / 3)) sizes.push_back(size);
  sizes.push_back(last);
  return sizes;
}

// The order in which a list is measured: the ends, then always the middle of the largest gaps, so
// that running out of time leaves a coarse curve.
std::vector<int64_t> CoarseFirst(const std::vector<int64_t>& sizes) {
  std::vector<int64_t> order = {sizes.front()};
  if (sizes.size() > 1) order.push_back(sizes.back());
  for (size_t stride = sizes.size(); stride > 1; stride = (stride + 1) / 2) {
    for (size_t i = stride / 2; i + 1 < sizes.size(); i += stride) {
      if (std::find(order.begin(), order.end(), sizes[i]) == order.end()) order.push_back(sizes[i]);
    }
    if (stride == 2) break;
  }
  for (const int64_t size : sizes) {
    if (std::find(order.begin(), order.end(), size) == order.end()) order.push_back(size);
  }
  return order;
}

int64_t Probe::MaxRows() const {
  const int64_t most = options_.limits.max_num_seqs * (1 + options_.speculation.num_drafts);
  return std::min({most, options_.limits.max_num_batched_tokens, options_.limits.max_logit_rows,
                   MaxSequences() * std::min(kv::kPageTokens, options_.limits.max_model_len - 1)});
}

void Probe::BuildBatch(int64_t rows, int64_t num_sequences, int64_t context) {
  tokens_.clear();
  sequences_.clear();
  pages_.resize(static_cast<size_t>(num_sequences));
  for (int64_t i = 0; i < num_sequences; ++i) {
    const int64_t first = i * rows / num_sequences;
    const int64_t end = (i + 1) * rows / num_sequences;
    auto& pages = pages_[static_cast<size_t>(i)];
    pages.clear();
    for (int64_t page = 0; page < kv::Layout::PagesFor(context + end - first); ++page) {
      pages.push_back(static_cast<model::PageId>(i + page));
    }
    sequences_.push_back({.slot = static_cast<model::StateSlot>(i),
                          .pages = pages,
                          .first_position = context,
                          .first_row = static_cast<int32_t>(first),
                          .num_rows = static_cast<int32_t>(end - first),
                          .num_logit_rows = static_cast<int32_t>(end - first)});
    for (int64_t row = first; row < end; ++row) {
      // Different tokens, since equal ones would share their experts.
      const auto word = sample::Philox({static_cast<uint32_t>(row), 0, 0, 0}, {1, 2})[0];
      tokens_.push_back(static_cast<int32_t>(word % static_cast<uint64_t>(runner_.VocabSize())));
    }
  }
  logits_.resize(static_cast<size_t>(rows * runner_.VocabSize()));
}

absl::StatusOr<double> Probe::TimeForward(int64_t rows, int64_t sequences, int64_t context) {
  BuildBatch(rows, sequences, context);
  const Clock::time_point start = Clock::now();
  RETURN_IF_ERROR(runner_.Forward({tokens_, sequences_}, logits_));
  return Milliseconds(Clock::now() - start);
}

absl::StatusOr<double> Probe::TimeDrafts(int64_t requests, int32_t width) {
  RETURN_IF_ERROR(TimeForward(requests).status());
  std::vector<model::DraftRows> rows;
  for (int64_t i = 0; i < requests; ++i) {
    rows.push_back({.sequence = static_cast<int32_t>(i),
                    .num_accepted = 1,
                    .next_token = tokens_[static_cast<size_t>(i)],
                    .num_drafts = width});
  }
  Chooser chooser;
  model::Drafts drafts;
  const Clock::time_point start = Clock::now();
  RETURN_IF_ERROR(runner_.Propose(rows, chooser, drafts));
  return Milliseconds(Clock::now() - start);
}

template <typename Time>
absl::StatusOr<double> Probe::Fastest(Time time) {
  std::vector<double> times;
  double spent = 0.0;
  do {
    ASSIGN_OR_RETURN(const double ms, time());
    times.push_back(ms);
    spent += ms;
    if (times.size() >= kRepeats && spent >= kLeastMs) break;
  } while (times.size() < kMostRepeats && HasTime());
  return std::max(1e-6, *std::min_element(times.begin(), times.end()));
}

absl::Status Probe::MeasureForward(sched::CostTable& table) {
  std::map<int64_t, double> measured;
  const std::vector<int64_t> order = CoarseFirst(Sizes(MaxRows()));
  for (size_t i = 0; i < order.size(); ++i) {
    if (i >= 2 && !HasTime()) break;
    ASSIGN_OR_RETURN(measured[order[i]], Fastest([&] { return TimeForward(order[i]); }));
  }
  for (const auto& [rows, ms] : measured) {
    table.forward.push_back({static_cast<double>(rows), ms});
  }
  return absl::OkStatus();
}

// What rows cost less that follow another one of the same sequence, from one sequence with all its
// drafts.
absl::Status Probe::MeasureDraftRows(sched::CostTable& table) {
  const int64_t drafts = options_.speculation.num_drafts;
  if (1 + drafts > std::min(MaxRows(), MaxSequences()) || !HasTime()) return absl::OkStatus();
  ASSIGN_OR_RETURN(const double ms, Fastest([&] { return TimeForward(1 + drafts, 1); }));
  const double apart = sched::CostCurve(table.forward).At(static_cast<double>(1 + drafts));
  table.ms_saved_per_draft = std::max(0.0, apart - ms) / static_cast<double>(drafts);
  for (sched::CostPoint& point : table.forward) {  // where there were more rows than sequences
    const double shared = std::max(0.0, point.size - static_cast<double>(MaxSequences()));
    point.ms += table.ms_saved_per_draft * shared;
  }
  return absl::OkStatus();
}

// What one more token of context costs each row, from one row at the end of a long one.
absl::Status Probe::MeasureContext(sched::CostTable& table) {
  const int64_t context = std::min(
      {kLongContext, options_.limits.max_model_len - 2, options_.num_pages * kv::kPageTokens - 2});
  if (context < kv::kPageTokens || !HasTime()) return absl::OkStatus();
  ASSIGN_OR_RETURN(const double ms, Fastest([&] { return TimeForward(1, 1, context); }));
  table.ms_per_context_token =
      std::max(0.0, ms - table.forward.front().ms) / static_cast<double>(context);
  return absl::OkStatus();
}

absl::Status Probe::MeasureDrafts(sched::CostTable& table) {
  std::map<int64_t, double> one;
  std::map<int64_t, double> full;
  const int32_t most = options_.speculation.num_drafts;
  const std::vector<int64_t> order = CoarseFirst(Sizes(MaxSequences()));
  for (size_t i = 0; i < order.size(); ++i) {
    if (i >= 2 && !HasTime()) break;
    ASSIGN_OR_RETURN(one[order[i]], Fastest([&] { return TimeDrafts(order[i], 1); }));
    ASSIGN_OR_RETURN(full[order[i]], Fastest([&] { return TimeDrafts(order[i], most); }));
  }
  for (const auto& [size, ms] : one) table.draft_one.push_back({static_cast<double>(size), ms});
  for (const auto& [size, ms] : full) table.draft_full.push_back({static_cast<double>(size), ms});
  return absl::OkStatus();
}

absl::StatusOr<sched::CostTable> Probe::Measure() {
  sched::CostTable table;
  table.max_drafts = options_.speculation.num_drafts;
  RETURN_IF_ERROR(TimeForward(1).status());  // touches the weights
  RETURN_IF_ERROR(MeasureForward(table));
  RETURN_IF_ERROR(MeasureDraftRows(table));
  RETURN_IF_ERROR(MeasureContext(table));
  RETURN_IF_ERROR(MeasureDrafts(table));
  return table;
}

}  // namespace

absl::StatusOr<sched::CostTable> MeasureCosts(const CoreOptions& options, ModelRunner& runner,
                                              std::chrono::milliseconds budget) {
  return Probe(options, runner, budget).Measure();
}

}  // namespace fulgur::engine

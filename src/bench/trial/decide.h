// Whether a variant is better than the base, given how much the base differs from itself.
//
// The base is measured before and after every variant. A variant's gain is the difference of the
// logarithms of its metric and of the mean of the two base runs beside it, so a slow drift of the
// machine cancels. The noise of one run is von Neumann's estimate from successive base runs,
// sum (x[i+1] - x[i])^2 / 2(n-1), which a drift does not inflate either; with normal noise it has
// 2(n-1)^2 / (3n-4) degrees of freedom.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "bench/results/comparison.h"

namespace fulgur::bench {

// One run of the whole load against one server.
struct MeasuredRun {
  std::string variant;                         // empty: the base
  std::map<std::string, double> values;        // the metric by cell ("chat c4"); valid cells only
  std::map<std::string, std::string> invalid;  // cells without a usable value, and why
  int64_t requests = 0;                        // finished, failed ones included
  int64_t failed = 0;
  std::string not_started;  // why the server did not start; then there is nothing else
};

// Natural logarithm of treated / base, sign turned so that above 0 is better, with a 95 % interval.
struct Gain {
  double value = 0.0;
  std::optional<Interval> interval;  // absent with fewer than two base runs
};

struct CellGain {
  std::string cell;
  double base = 0.0;     // mean over the runs beside the variant
  double variant = 0.0;  // mean over its runs
  Gain gain;
  Verdict verdict = Verdict::kNoise;
};

struct Decision {
  std::string decision;  // "accepted", "rejected", "undecided"
  std::string reason;
  std::optional<Gain> gain;  // mean over the cells
  std::vector<CellGain> cells;
  int64_t requests = 0;
  int64_t failed = 0;
};

struct DecisionRule {
  bool larger_is_better = true;
  double threshold = 0.05;
  int64_t rounds = 1;  // that were planned
};

// `runs` in the order in which they were measured, a base run at both ends of each variant's. The
// first that applies decides: it did not start; more of its requests failed than of the base's
// (Fisher's exact test at 1 %); not all cells can be compared; a cell is worse; all in all it is
// better by the threshold.
Decision Decide(const std::vector<MeasuredRun>& runs, const std::string& variant,
                const DecisionRule& rule);

// A gain as the change of the metric in percent; negative if it became worse.
double PercentOf(double gain);

// The base's noise: one standard deviation of a run's mean over cells, as a part. Absent with fewer
// than two base runs.
std::optional<double> BaseNoise(const std::vector<MeasuredRun>& runs);

// Probability of at least `failed` failures among `requests` drawn from the two groups together.
double FailureProbability(int64_t failed, int64_t requests, int64_t base_failed,
                          int64_t base_requests);

}  // namespace fulgur::bench

#include "bench/trial/decide.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "bench/results/contrast.h"
#include "boost/math/distributions/students_t.hpp"
#include "fmt/format.h"
#include "fmt/ranges.h"

namespace fulgur::bench {
namespace {

constexpr double kFailureLevel = 0.01;

// Values of one cell, or their mean over cells, along the runs; absent where not measured.
using Track = std::vector<std::optional<double>>;

bool IsBase(const MeasuredRun& run) { return run.variant.empty(); }

Track LogTrack(const std::vector<MeasuredRun>& runs, const std::string& cell) {
  Track track;
  for (const MeasuredRun& run : runs) {
    const auto found = run.values.find(cell);
    const bool usable = found != run.values.end() && found->second > 0;
    track.push_back(usable ? std::optional(std::log(found->second)) : std::nullopt);
  }
  return track;
}

Track MeanTrack(const std::vector<MeasuredRun>& runs, const std::vector<std::string>& cells) {
  Track mean(runs.size());
  if (cells.empty()) return mean;
  for (size_t i = 0; i < runs.size(); ++i) mean[i] = 0.0;
  for (const std::string& cell : cells) {
    const Track track = LogTrack(runs, cell);
    for (size_t i = 0; i < runs.size(); ++i) {
      if (mean[i] && track[i]) {
        *mean[i] += *track[i] / static_cast<double>(cells.size());
      } else {
        mean[i].reset();
      }
    }
  }
  return mean;
}

struct Noise {
  double variance = 0.0;  // of one run
  double degrees = 0.0;
};

std::optional<Noise> NoiseOf(const std::vector<MeasuredRun>& runs, const Track& track) {
  std::vector<double> base;
  for (size_t i = 0; i < runs.size(); ++i) {
    if (IsBase(runs[i]) && track[i]) base.push_back(*track[i]);
  }
  if (base.size() < 2) return std::nullopt;
  const auto n = static_cast<double>(base.size());
  Noise noise;
  for (size_t i = 1; i < base.size(); ++i) {
    noise.variance += std::pow(base[i] - base[i - 1], 2) / (2 * (n - 1));
  }
  noise.degrees = 2 * (n - 1) * (n - 1) / (3 * n - 4);
  return noise;
}

// The nearest base run before (`step` -1) or behind (+1) that has a value.
std::optional<size_t> BaseBeside(const std::vector<MeasuredRun>& runs, const Track& track,
                                 size_t run, int step) {
  auto at = static_cast<int64_t>(run) + step;
  for (; at >= 0 && at < static_cast<int64_t>(runs.size()); at += step) {
    const auto i = static_cast<size_t>(at);
    if (IsBase(runs[i]) && track[i]) return i;
  }
  return std::nullopt;
}

// How the runs of a variant are weighed against those of the base.
struct Weights {
  std::vector<double> variant;  // 1 / rounds each
  std::vector<double> base;     // add up to 1
};

std::optional<Weights> WeightsOf(const std::vector<MeasuredRun>& runs, const Track& track,
                                 const std::string& variant) {
  std::vector<size_t> own;
  for (size_t i = 0; i < runs.size(); ++i) {
    if (runs[i].variant == variant && track[i]) own.push_back(i);
  }
  if (own.empty()) return std::nullopt;
  Weights weights{std::vector<double>(runs.size()), std::vector<double>(runs.size())};
  const double share = 1.0 / static_cast<double>(own.size());
  for (const size_t i : own) {
    const auto before = BaseBeside(runs, track, i, -1);
    const auto behind = BaseBeside(runs, track, i, +1);
    if (!before && !behind) return std::nullopt;
    weights.variant[i] = share;
    weights.base[before.value_or(*(behind ? behind : before))] += share / 2;
    weights.base[behind.value_or(*(before ? before : behind))] += share / 2;
  }
  return weights;
}

double WeightedMean(const Track& track, const std::vector<double>& weights) {
  double mean = 0.0;
  for (size_t i = 0; i < track.size(); ++i) {
    if (weights[i] > 0) mean += weights[i] * *track[i];
  }
  return mean;
}

Gain GainOf(const std::vector<MeasuredRun>& runs, const Track& track, const Weights& weights,
            bool larger_is_better) {
  Gain gain;
  const double sign = larger_is_better ? 1.0 : -1.0;
  gain.value = sign * (WeightedMean(track, weights.variant) - WeightedMean(track, weights.base));
  const auto noise = NoiseOf(runs, track);
  if (!noise) return gain;
  double squares = 0.0;
  for (size_t i = 0; i < runs.size(); ++i) {
    squares += weights.variant[i] * weights.variant[i] + weights.base[i] * weights.base[i];
  }
  const boost::math::students_t student(noise->degrees);
  const double reach = boost::math::quantile(student, 0.975) * std::sqrt(noise->variance * squares);
  gain.interval = Interval{gain.value - reach, gain.value + reach};
  return gain;
}

Verdict VerdictOf(const Gain& gain, double threshold) {
  std::optional<Interval> speedup;
  if (gain.interval) {
    speedup = Interval{std::exp(gain.interval->low), std::exp(gain.interval->high)};
  }
  return Judge(std::exp(gain.value), speedup, threshold);
}

std::string Describe(const Gain& gain) {
  if (!gain.interval) return fmt::format("{:+.1f} %", PercentOf(gain.value));
  return fmt::format("{:+.1f} % ({:+.1f} to {:+.1f})", PercentOf(gain.value),
                     PercentOf(gain.interval->low), PercentOf(gain.interval->high));
}

// All cells that any run of the base has.
std::vector<std::string> BaseCells(const std::vector<MeasuredRun>& runs) {
  std::set<std::string> cells;
  for (const MeasuredRun& run : runs) {
    if (!IsBase(run)) continue;
    for (const auto& [cell, value] : run.values) cells.insert(cell);
  }
  return {cells.begin(), cells.end()};
}

void CompareCells(const std::vector<MeasuredRun>& runs, const std::string& variant,
                  const DecisionRule& rule, Decision& decision) {
  for (const std::string& cell : BaseCells(runs)) {
    const Track track = LogTrack(runs, cell);
    const auto weights = WeightsOf(runs, track, variant);
    if (!weights) continue;
    CellGain gain;
    gain.cell = cell;
    gain.base = std::exp(WeightedMean(track, weights->base));
    gain.variant = std::exp(WeightedMean(track, weights->variant));
    gain.gain = GainOf(runs, track, *weights, rule.larger_is_better);
    gain.verdict = VerdictOf(gain.gain, rule.threshold);
    decision.cells.push_back(std::move(gain));
  }
}

// The first cell of a run of `variant` without a usable value, and why; empty if there is none.
std::string FirstInvalid(const std::vector<MeasuredRun>& runs, const std::string& variant) {
  for (const MeasuredRun& run : runs) {
    if (run.variant != variant || run.invalid.empty()) continue;
    const auto& [cell, why] = *run.invalid.begin();
    return fmt::format("{}: {}", cell, why);
  }
  return "";
}

// Why some cell of the variant's cannot be compared; empty if all can.
std::string WhyNotComparable(const std::vector<MeasuredRun>& runs, const std::string& variant,
                             const Decision& decision) {
  const std::string own = FirstInvalid(runs, variant);
  if (!own.empty()) return fmt::format("no usable value for {}", own);
  if (decision.cells.empty()) {
    const std::string base = FirstInvalid(runs, "");
    return base.empty() ? "there is nothing to compare"
                        : fmt::format("the base has no usable value for {}", base);
  }
  const size_t wanted = BaseCells(runs).size();
  if (decision.cells.size() == wanted) return "";
  return fmt::format("only {} of {} cells were measured", decision.cells.size(), wanted);
}

struct Failures {
  int64_t failed = 0;
  int64_t requests = 0;
};

Failures FailuresOf(const std::vector<MeasuredRun>& runs, const std::string& variant) {
  Failures failures;
  for (const MeasuredRun& run : runs) {
    if (run.variant != variant) continue;
    failures.failed += run.failed;
    failures.requests += run.requests;
  }
  return failures;
}

// What to say of failed requests that do not decide: they are the load's doing.
std::string RemarkOnFailures(const Failures& own, const Failures& base) {
  if (own.failed == 0) return "";
  return fmt::format(
      "; {} of {} requests failed, as with the base ({} of {}): the change is not "
      "the cause",
      own.failed, own.requests, base.failed, base.requests);
}

void Settle(Decision& decision, std::string_view word, std::string reason) {
  decision.decision = word;
  decision.reason = std::move(reason);
}

void DecideByGain(const DecisionRule& rule, Decision& decision) {
  for (const CellGain& cell : decision.cells) {
    if (cell.verdict != Verdict::kRegression) continue;
    return Settle(decision, "rejected",
                  fmt::format("worse in {}: {}", cell.cell, Describe(cell.gain)));
  }
  const std::string all = Describe(*decision.gain);
  const Verdict verdict = VerdictOf(*decision.gain, rule.threshold);
  if (verdict == Verdict::kImproved) {
    return Settle(decision, "accepted", fmt::format("better: {}, and no cell is worse", all));
  }
  if (verdict == Verdict::kRegression) {
    return Settle(decision, "rejected", fmt::format("worse: {}", all));
  }
  const auto& interval = decision.gain->interval;
  if (!interval || interval->high < std::log1p(rule.threshold)) {
    return Settle(decision, "rejected",
                  fmt::format("no gain worth a change: {}, below the threshold of {:g} %", all,
                              rule.threshold * 100));
  }
  Settle(decision, "undecided",
         fmt::format("{}: the base's own noise hides whether it is better by {:g} %; more "
                     "\"rounds\" than {} or a longer load would tell",
                     all, rule.threshold * 100, rule.rounds));
}

double LogChoose(int64_t n, int64_t k) {
  const auto log_factorial = [](int64_t m) { return std::lgamma(static_cast<double>(m) + 1.0); };
  return log_factorial(n) - log_factorial(k) - log_factorial(n - k);
}

}  // namespace

double PercentOf(double gain) { return (std::exp(gain) - 1) * 100.0; }

double FailureProbability(int64_t failed, int64_t requests, int64_t base_failed,
                          int64_t base_requests) {
  const int64_t all_failed = failed + base_failed;
  const int64_t all = requests + base_requests;
  double probability = 0.0;  // of the hypergeometric law's upper tail
  for (int64_t k = failed; k <= std::min(all_failed, requests); ++k) {
    if (requests - k > all - all_failed) continue;
    probability += std::exp(LogChoose(all_failed, k) + LogChoose(all - all_failed, requests - k) -
                            LogChoose(all, requests));
  }
  return std::min(1.0, probability);
}

std::optional<double> BaseNoise(const std::vector<MeasuredRun>& runs) {
  const auto noise = NoiseOf(runs, MeanTrack(runs, BaseCells(runs)));
  if (!noise) return std::nullopt;
  return std::sqrt(noise->variance);
}

Decision Decide(const std::vector<MeasuredRun>& runs, const std::string& variant,
                const DecisionRule& rule) {
  Decision decision;
  const Failures own = FailuresOf(runs, variant);
  const Failures base = FailuresOf(runs, "");
  decision.requests = own.requests;
  decision.failed = own.failed;
  bool tried = false;
  for (const MeasuredRun& run : runs) {
    if (run.variant != variant) continue;
    tried = true;
    if (run.not_started.empty()) continue;
    Settle(decision, "rejected", fmt::format("did not start: {}", run.not_started));
    return decision;
  }
  if (!tried) {
    Settle(decision, "undecided", "was not tried");
    return decision;
  }
  CompareCells(runs, variant, rule, decision);
  if (FailureProbability(own.failed, own.requests, base.failed, base.requests) < kFailureLevel) {
    Settle(decision, "rejected",
           fmt::format("{} of {} requests failed, with the base {} of {}", own.failed, own.requests,
                       base.failed, base.requests));
    return decision;
  }
  if (const std::string why = WhyNotComparable(runs, variant, decision); !why.empty()) {
    Settle(decision, "undecided", why);
    return decision;
  }
  const Track mean = MeanTrack(runs, BaseCells(runs));
  const auto weights = WeightsOf(runs, mean, variant);
  if (!weights) {
    Settle(decision, "undecided", "no run of it and of the base has all cells");
    return decision;
  }
  decision.gain = GainOf(runs, mean, *weights, rule.larger_is_better);
  DecideByGain(rule, decision);
  decision.reason += RemarkOnFailures(own, base);
  return decision;
}

}  // namespace fulgur::bench

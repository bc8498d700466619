// How sure a score is, and whether two systems differ.
#pragma once

#include <cstdint>
#include <span>

namespace fulgur::bench {

struct Interval {
  double low = 0.0;
  double high = 0.0;
};

// Standard error of the mean of `values`: binary answers, or means over the samples of an item
// (clustered, so that samples of one question do not count as independent).
double StandardError(std::span<const double> values);

// Wilson's 95 % interval of a share; (0, 1) for no trials.
Interval WilsonInterval(int64_t successes, int64_t trials);

// Unbiased pass@k of one item: the chance that k of its n samples, c of them right, hold a right
// one (Chen et al., 2021). Needs 1 <= k <= n.
double PassAtK(int64_t n, int64_t c, int64_t k);

// Two systems on the same items, each right (1) or wrong (0).
struct PairedOutcome {
  int64_t only_first = 0;  // items that only the first answered right
  int64_t only_second = 0;
};
// Exact two-sided McNemar test: the chance of a split at least as uneven, were both equally good.
double McNemarP(const PairedOutcome& outcome);

// 95 % interval of the mean of first[i] - second[i] by a paired bootstrap; the seed fixes it.
Interval BootstrapDifference(std::span<const double> first, std::span<const double> second,
                             uint64_t seed);

}  // namespace fulgur::bench

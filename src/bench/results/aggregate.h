// Reads the results of several systems and compares them: the work of `fulgur bench aggregate`.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "bench/results/comparison.h"

namespace fulgur::bench {

struct SystemInput {
  std::string id;
  std::string label;                  // empty: the id
  std::filesystem::path path;         // a folder of results, a manifest, or a reference file
  std::filesystem::path utilisation;  // a log of the sampler; empty: none
  std::optional<int64_t> devices;
  double clock_offset_s = 0.0;  // sampler's clock minus load generator's clock
};

struct AggregateOptions {
  std::vector<SystemInput> systems;
  std::filesystem::path trials;  // a fulgur-trials/1 file of single-factor trials; empty: none
  std::string baseline;          // ids; empty: the first two systems
  std::string treatment;
  double threshold = 0.05;
  bool latest = false;  // of several results for one cell take the newest, else it is a mistake
  int32_t resamples = 2000;
  uint64_t seed = 42;  // of the bootstrap
};

// Everything readable is in the comparison; everything else is a sentence in its `problems`. Fails
// only if no system has a single readable cell or the options contradict each other.
absl::StatusOr<Comparison> Aggregate(const AggregateOptions& options);

struct GateOptions {
  bool fail_on_regression = false;
  std::optional<double> min_ratio;  // measured >= ratio * baseline, by system output tokens/sec
  std::optional<double> max_error_percent;
};

struct GateResult {
  bool passed = true;
  std::vector<std::string> failures;
  std::vector<std::string> notices;  // "the baseline is stale": results above 1 / ratio
};

GateResult ApplyGate(const Comparison& comparison, const GateOptions& options);

}  // namespace fulgur::bench

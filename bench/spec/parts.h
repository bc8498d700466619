// The parts of the benchmark. Each prints a table in Markdown.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "arm.h"

namespace fulgur::bench_spec {

struct BenchOptions {
  std::string demo = "models/demo";
  std::string dspark;  // a folder with DSpark stages for the demo model; empty: its own
  std::string mtp = "models/demo-mtp";  // a folder with an MTP block for it
  int mtp_drafts = 3;                   // it is fed back for all but the first
  std::string toy =
      "bench/spec/toy";  // the config.json of a larger model, which gets random weights
  std::string prompts = "bench/spec/prompts.json";
  int threads = 1;
  bool thread_time = false;
  bool quick = false;
};

// Adaptive and fixed drafting against plain decoding, over concurrency, context and the quality of
// drafts.
absl::Status NeverSlower(const BenchOptions& options);
// What a trained drafter gains on text that it can predict, and the most it could.
absl::Status Gain(const BenchOptions& options);
// Published accept lengths on a larger model with random weights, over concurrency.
absl::Status Published(const BenchOptions& options);
// Decoding with a drafter that is loaded and not used.
absl::Status Skipped(const BenchOptions& options);
// The time that planning a step takes.
absl::Status PlannerCost(const BenchOptions& options);

// The demo model with a trained drafter, or with one of random weights.
ModelSource DemoMtp(const BenchOptions& options);
ModelSource DemoDspark(const BenchOptions& options);
ModelSource RandomDspark(const BenchOptions& options);
ModelSource Toy(const BenchOptions& options);

}  // namespace fulgur::bench_spec

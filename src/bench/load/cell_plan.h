// One cell, resolved: everything that decides what is sent, and its hash.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "bench/load/run_options.h"
#include "bench/load/server_info.h"
#include "bench/results/run_plan.h"
#include "text/tokenizer.h"

namespace fulgur::bench {

// What is known after the server and the tokenizer were looked at.
struct Surroundings {
  std::vector<HttpTarget> targets;
  RequestShape shape;  // with the model's name
  std::optional<text::Tokenizer> tokenizer;
  std::optional<int64_t> max_model_len;
  int64_t template_overhead = 0;
  double tokens_per_word = 1.0;  // without a tokenizer
};

struct CellPlan {
  std::string scenario;
  int64_t concurrency = 1;
  int32_t repetition = 0;
  std::filesystem::path folder;
  WorkloadSpec workload;
  Corpus corpus = Corpus::kWords;
  LoadSpec load;
  Transport transport;
  int64_t prefix_warmups = 0;       // the first of the warm-up requests
  std::optional<int64_t> sessions;  // absent: as many as the time allows
  RunPlan run;                      // as result files tell it
  std::string hash;                 // of all that decides what is sent

  std::string Name() const;
};

// Reads the data set, draws the arrival times, and checks what does not fit together.
absl::StatusOr<CellPlan> ResolveCell(const RunOptions& options, const Scenario& scenario,
                                     int64_t concurrency, const Surroundings& surroundings);

}  // namespace fulgur::bench

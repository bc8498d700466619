// What a run was asked to do, as far as a result file tells it: aiperf's `input_config` and
// `run_info`.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace fulgur::bench {

struct LengthSpec {
  double mean = 0.0;
  double stddev = 0.0;
};

struct LengthPair {
  LengthSpec input, output;
  double probability = 1.0;
};

// A phase as planned; absent fields were not asked for.
struct PlannedPhase {
  std::string name;                  // "warmup", "profiling"
  std::string type = "concurrency";  // or "poisson", "constant", "gamma", "fixed_schedule", ...
  std::optional<int64_t> requests;
  std::optional<double> duration_s;
  std::optional<int64_t> concurrency;
  std::optional<double> rate;  // requests per second
};

// What was asked for; becomes `input_config` and `run_info`.
struct RunPlan {
  std::string benchmark_id;  // 12 lower-case hexadecimal digits
  std::vector<std::string> models;
  std::vector<std::string> urls;
  std::string endpoint_type = "chat";
  bool streaming = true;
  bool per_chunk_usage = false;              // ITL then leaves out the tokens of the first chunk
  std::map<std::string, std::string> extra;  // extra inputs: name -> JSON text of the value
  std::optional<LengthSpec> input_length;
  std::optional<LengthSpec> output_length;
  std::vector<LengthPair> sequence_distribution;  // instead of the two above
  std::optional<int64_t> dataset_entries;
  std::vector<PlannedPhase> phases;
  std::map<std::string, double> objectives;  // goodput: tag -> limit
  std::string tokenizer;
  std::string token_source;  // "usage", "tokenizer" ...
  std::optional<int64_t> random_seed;
  int32_t trial = 0;
  std::string command_line;  // secrets already removed
  std::map<std::string, std::string>
      details;  // anything else for fulgur_run.json: mode, plan hash ...
};

}  // namespace fulgur::bench

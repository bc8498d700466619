// Makes the requests of a cell, one session after the other, the same for the same seed.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <unordered_set>
#include <vector>

#include "absl/status/statusor.h"
#include "bench/load/dataset.h"
#include "bench/load/lengths.h"
#include "bench/load/prompt_text.h"
#include "bench/load/random.h"
#include "bench/load/request_body.h"
#include "bench/load/session.h"

namespace fulgur::bench {

enum class PoolOrder { kSequential, kShuffle, kRandom };

// Text that several requests begin with.
struct PrefixSpec {
  int64_t groups = 0;         // how many different ones; 0: none
  int64_t length = 0;         // tokens of a group's prefix
  int64_t shared_system = 0;  // tokens of a system message that all requests share
  int64_t user_context = 0;   // tokens of a first message that one session keeps to itself
};

struct TurnSpec {
  LengthLaw turns = {.mean = 1.0, .stddev = 0.0};
  LengthLaw delay_ms = {.mean = 0.0, .stddev = 0.0};
  double delay_ratio = 1.0;
};

struct WorkloadSpec {
  std::vector<LengthPairLaw> lengths;
  PrefixSpec prefix;
  TurnSpec turns;
  std::optional<Dataset> dataset;  // instead of made-up texts
  // Size of the pool that requests are taken from; absent: every request is different.
  std::optional<int64_t> pool;
  PoolOrder order = PoolOrder::kSequential;
  int64_t trace_block_tokens = 512;
  // The server counts so many tokens more than the text has: prompts are made that much shorter.
  int64_t template_overhead = 0;
  std::optional<int64_t> max_model_len;          // outputs are cut to fit
  std::optional<int64_t> default_output_tokens;  // for requests of a data set that say nothing
  int64_t seed = 42;
};

// One thread. Warm-up sessions come from random streams of their own: their prompts never occur in
// the measured part.
class Workload {
 public:
  Workload(WorkloadSpec spec, RequestShape shape, PromptText text);

  PlannedSession Make(int64_t index, bool warmup);

  // A short request that brings a group's prefix into the server's cache.
  PlannedSession MakePrefixWarmup(int64_t group);

  // Sessions that the data set has; absent: any number.
  std::optional<int64_t> size() const;

  int64_t clipped() const { return clipped_; }  // outputs cut to the model's limit
  int64_t inexact() const { return inexact_; }  // prompts whose length could not be met

  // Part of the measured input tokens that a cache without limits would know.
  std::optional<double> expected_hits() const;

 private:
  struct Streams {
    RandomStream lengths, prompts, delays;
  };

  PlannedSession MakeSynthetic(Streams& streams);
  PlannedSession MakeFromDataset(int64_t index, bool warmup);
  PlannedSession MakeFromTrace(const TraceEntry& entry);
  PlannedSession FromPool(int64_t index, Streams& streams);
  std::string UniqueText(int64_t tokens, RandomStream& random, int64_t& made);
  const std::string& SharedText(const std::string& name, int64_t tokens);
  void Complete(PlannedSession& session);
  size_t DatasetPosition(int64_t index) const;

  WorkloadSpec spec_;
  RequestShape shape_;
  PromptText text_;
  Streams profiling_;
  Streams warmup_;
  RandomStream order_;
  std::vector<size_t> shuffled_;
  std::vector<PlannedSession> pool_;
  std::unordered_set<uint64_t> openings_;  // hashes of the first words of prompts made so far
  std::vector<std::pair<std::string, std::string>> shared_texts_;
  int64_t clipped_ = 0;
  int64_t inexact_ = 0;
  int64_t input_tokens_ = 0;   // of the measured sessions
  int64_t shared_tokens_ = 0;  // of them, in prefixes
};

}  // namespace fulgur::bench

// How long prompts and answers shall be: fixed, normal, or a mix of pairs.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "bench/load/random.h"

namespace fulgur::bench {

struct LengthLaw {
  double mean = 0.0;
  double stddev = 0.0;
  double range_ratio = 0.0;  // vLLM's way: uniform within mean x (1 +- ratio), instead of normal
};

struct LengthPairLaw {
  LengthLaw input;
  LengthLaw output;  // mean 0: the server decides
  double weight = 1.0;
};

struct DrawnLengths {
  int64_t input = 0;
  int64_t output = 0;  // 0: not asked for
};

// Normal, redrawn until positive, rounded up as aiperf does; at least 1. Without a deviation the
// rounded mean.
int64_t DrawLength(const LengthLaw& law, RandomStream& random);

// Lengths of one request from a mix, each pair as likely as its weight.
DrawnLengths DrawLengths(const std::vector<LengthPairLaw>& mix, RandomStream& random);

// Reads aiperf's --seq-dist in its three notations: "128|16,256|8:60;1024,128:40",
// "[(128,256):60,(1024,128):40]" and {"pairs": [{"isl", "isl_stddev", "osl", "osl_stddev",
// "prob"}]}. White space is ignored. Weights are relative.
absl::StatusOr<std::vector<LengthPairLaw>> ParseLengthMix(std::string text);

}  // namespace fulgur::bench

// min-p, top-k and top-p: each keeps the first tokens of the order (score descending, id
// ascending).
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "sample/sampling_params.h"

namespace fulgur::sample {

// The last token that is kept. All tokens before it are kept, too; masked ones (-inf) never are.
struct Cut {
  float score = std::numeric_limits<float>::lowest();
  int32_t token = std::numeric_limits<int32_t>::max();

  bool Keeps(float other_score, int32_t other_token) const {
    return other_score > score || (other_score == score && other_token <= token);
  }
};

// Scratch that is reused from row to row.
struct TruncationScratch {
  std::vector<int32_t> tokens;
  std::vector<double> masses;
};

// scores: log weights, the largest of them 0. At least one token is kept. Pure but for the scratch.
Cut Truncate(std::span<const float> scores, const SamplingParams& params,
             TruncationScratch& scratch);

}  // namespace fulgur::sample

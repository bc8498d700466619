// Verifies drafts: chooses the token behind a row of logits and says whether the draft stands.
//
// Exact match: the token is what the sampler chooses anyway, and a draft stands if it is that
// token. Since the sampler's noise belongs to the position, drafts drawn with the same noise match
// often, and the text is the same with and without drafts, whatever is drafted and however much of
// it is verified.
// Rejection (Leviathan et al. 2023; Chen et al. 2023): a draft drawn from q stands with probability
// min(1, p / q); in its place a token is drawn from what p exceeds q by. Only the distribution of
// the text is the same; more drafts stand. Greedy requests are verified by exact match in any case.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "sample/noise.h"
#include "sample/sampler.h"

namespace fulgur::sample {

enum class VerifyMethod { kExactMatch, kRejection };

// A draft of the token behind a row.
struct Draft {
  int32_t token = 0;
  std::span<const float> probabilities = {};  // [V] it was drawn from; exact match: empty
};

struct Verdict {
  int32_t token = 0;  // the one that is said
  bool stands = false;
};

// Owns scratch for one row. One thread.
class Verifier {
 public:
  Verifier(VerifyMethod method, int64_t vocab_size);

  // Whether drafts of this request need the probabilities they were drawn from.
  bool NeedsProbabilities(const SamplingParams& params) const {
    return method_ == VerifyMethod::kRejection && !params.greedy();
  }

  // Draws a draft from a drafter's logits [V]. `probabilities` [V] are filled in if they are
  // needed. Errors as of Sampler.
  absl::StatusOr<int32_t> Propose(std::span<const float> logits, const TokenContext& context,
                                  std::span<float> probabilities);

  // The token behind a row without a draft.
  absl::StatusOr<int32_t> Sample(std::span<const float> logits, const TokenContext& context) {
    return sampler_.Sample(logits, context);
  }
  // The same for a row with one.
  absl::StatusOr<Verdict> Verify(std::span<const float> logits, const TokenContext& context,
                                 const Draft& draft);

 private:
  const VerifyMethod method_;
  Sampler sampler_;
  std::vector<float> target_;    // [V]
  std::vector<float> residual_;  // [V]
};

// Draws an index with a probability in proportion to its weight; some weight must be positive.
int32_t DrawInProportion(std::span<const float> weights, const PositionNoise& noise);

// For benchmarks: how many drafts of a round stand if draft k is to stand in a share rates[k] of
// the rounds, rates falling. The numbers of a mean vary as little as they can.
int32_t SyntheticAcceptance(std::span<const double> rates, uint64_t seed, int64_t position);

}  // namespace fulgur::sample

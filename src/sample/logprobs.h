// Log probabilities of tokens, from raw logits.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace fulgur::sample {

struct TokenLogprob {
  int32_t token = 0;
  float logprob = 0.0F;
  int32_t rank = 0;  // 1: the most probable; equal ones are ordered by token id
};

// log(sum(exp(logits))). Pure; logits must be finite or -inf, not all -inf.
double LogSumExp(std::span<const float> logits);

// The entry of one token: log softmax, and its place in the order (logit descending, id ascending).
TokenLogprob LogprobOf(std::span<const float> logits, double log_sum_exp, int32_t token);

// Appends the `count` most probable tokens, best first. count < 0: all of them.
void AppendTopLogprobs(std::span<const float> logits, double log_sum_exp, int64_t count,
                       std::vector<TokenLogprob>& out);

}  // namespace fulgur::sample

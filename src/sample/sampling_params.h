// How one request wants its tokens chosen. Values are validated where they enter (the API); ranges
// are in comments.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace fulgur::sample {

// Below this a temperature means greedy.
inline constexpr float kGreedyTemperature = 1e-5F;

struct SamplingParams {
  float temperature = 1.0F;         // >= 0; 0 is greedy
  float top_p = 1.0F;               // (0, 1]
  int32_t top_k = 0;                // 0: all
  float min_p = 0.0F;               // [0, 1]
  float presence_penalty = 0.0F;    // [-2, 2]
  float frequency_penalty = 0.0F;   // [-2, 2]
  float repetition_penalty = 1.0F;  // > 0
  std::optional<uint64_t>
      seed;  // reproducible whatever else runs; without one, the engine draws it

  int64_t max_tokens = 16;  // >= 1
  int64_t min_tokens = 0;   // no stop token before that many
  bool ignore_eos = false;
  std::vector<int32_t> stop_token_ids;  // besides the model's end-of-sequence tokens

  std::vector<std::pair<int32_t, float>> logit_bias;  // token, added logit
  std::vector<int32_t> allowed_token_ids;             // empty: all
  std::vector<std::vector<int32_t>> bad_words;        // token sequences that must not be completed

  std::optional<int32_t> num_logprobs;  // alternatives per generated token; 0: only the chosen one
  std::optional<int32_t> num_prompt_logprobs;  // the same for the prompt

  bool greedy() const { return temperature < kGreedyTemperature; }
};

}  // namespace fulgur::sample

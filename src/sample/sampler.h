// Chooses the next token of a request from one row of logits.
//
// The choice is a pure function of the row, the request's parameters and seed, and the tokens so
// far. Steps, in vLLM's order: allowed ids, format, bad words, min_tokens, logit bias, penalties,
// temperature, min-p, top-k, top-p, then the largest (score + Gumbel noise).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "sample/sampling_params.h"
#include "sample/token_constraint.h"
#include "sample/truncation.h"

namespace fulgur::sample {

// What a request has said and wants said. All ids are inside the vocabulary.
struct TokenContext {
  const SamplingParams& params;
  uint64_t seed = 0;
  std::span<const int32_t> prompt;
  std::span<const int32_t> output;
  std::span<const int32_t> eos_tokens;        // with params.stop_token_ids: masked below min_tokens
  std::optional<AllowedTokens> allowed = {};  // by the format that the request asks for

  int64_t position() const { return static_cast<int64_t>(prompt.size() + output.size()); }
};

// Owns scratch for one row. One thread at a time; several samplers may work side by side.
class Sampler {
 public:
  explicit Sampler(int64_t vocab_size);

  // logits: [V]. kInternal if the row holds NaN or infinity, kInvalidArgument if the request's own
  // masks leave no token. Does not allocate after warm-up.
  absl::StatusOr<int32_t> Sample(std::span<const float> logits, const TokenContext& context);

  // The distribution that Sample draws from, as probabilities [V]; greedy: all on one token. The
  // same errors.
  absl::Status Distribution(std::span<const float> logits, const TokenContext& context,
                            std::span<float> probabilities);

 private:
  // All steps but the noise: raw logits -> scores_, relative to the best token, which is returned.
  // Greedy rows end before the temperature.
  absl::StatusOr<int32_t> Shape(std::span<const float> logits, const TokenContext& context);
  // The processors up to the penalties: raw logits -> scores_.
  void Process(std::span<const float> logits, const TokenContext& context);
  void MaskAllBut(std::span<const float> logits, std::span<const int32_t> allowed);
  void MaskOutsideFormat(const TokenContext& context);
  void MaskBadWords(const TokenContext& context);
  void MaskStops(const TokenContext& context);
  void Penalize(const TokenContext& context);
  std::vector<float> scores_;    // [V]
  std::vector<int32_t> counts_;  // [V], zero between calls
  TruncationScratch truncation_;
};

}  // namespace fulgur::sample

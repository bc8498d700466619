// When a request has said enough.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>

#include "engine/engine.h"

namespace fulgur::engine {

// The finish reason after `token` became output number `num_output`, if it is the last: an
// end-of-sequence or stop token (not below min_tokens), or no room for another one.
inline std::optional<FinishReason> CheckStop(const sample::SamplingParams& params,
                                             std::span<const int32_t> eos_tokens, int32_t token,
                                             int64_t num_output, bool no_room) {
  const auto contains = [token](std::span<const int32_t> tokens) {
    return std::find(tokens.begin(), tokens.end(), token) != tokens.end();
  };
  const bool stops =
      (!params.ignore_eos && contains(eos_tokens)) || contains(params.stop_token_ids);
  if (stops && num_output >= params.min_tokens) return FinishReason::kStop;
  if (no_room || num_output >= params.max_tokens) return FinishReason::kLength;
  return std::nullopt;
}

}  // namespace fulgur::engine

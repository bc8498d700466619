// One request inside the engine: its sequence, and how its tokens are chosen and sent.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "engine/engine.h"
#include "sample/sampler.h"
#include "sched/sequence.h"
#include "sched/survival_model.h"

namespace fulgur::engine {

// What speculation knows of a request. Empty for requests without drafts.
struct DraftState {
  int32_t limit = 0;    // the most drafts per step
  bool pinned = false;  // always that many: its text depends on how many are verified
  bool wanted = false;  // by the latest plan
  std::optional<sched::RequestSurvival> survival;
  std::vector<float> probabilities;  // [limit, V] of the drafts at hand, if they are needed
};

// All sequences that an EngineCore schedules are of this kind.
struct ActiveRequest : sched::Sequence {
  sample::SamplingParams params;
  std::shared_ptr<sample::TokenConstraint> constraint;
  uint64_t seed = 0;
  EventSink sink;
  RequestRecord record;
  std::vector<std::vector<TokenLogprob>> prompt_logprobs;  // so far
  DraftState drafting;

  std::span<const int32_t> prompt() const {
    return std::span(tokens).first(static_cast<size_t>(num_prompt_tokens));
  }
  std::span<const int32_t> output() const {
    return std::span(tokens).subspan(static_cast<size_t>(num_prompt_tokens));
  }
  sample::TokenContext Context(std::span<const int32_t> eos_tokens) const {
    return {.params = params,
            .seed = seed,
            .prompt = prompt(),
            .output = output(),
            .eos_tokens = eos_tokens};
  }
  bool wants_prompt_logprobs() const { return params.num_prompt_logprobs.has_value(); }
};

inline ActiveRequest& RequestOf(sched::Sequence& sequence) {
  return static_cast<ActiveRequest&>(sequence);
}

}  // namespace fulgur::engine

// For tests: an engine core over the fake runner, and what its requests heard.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <random>
#include <utility>
#include <vector>

#include "engine/engine_core.h"
#include "engine/fake_runner.h"
#include "gtest/gtest.h"

namespace fulgur::engine {

struct Outcome {
  std::vector<OutputToken> tokens;
  std::vector<std::vector<TokenLogprob>> prompt_logprobs;
  std::optional<RequestEvent> last;
  int num_events = 0;
  int num_ends = 0;

  std::vector<int32_t> ids() const {
    std::vector<int32_t> out;
    for (const OutputToken& token : tokens) out.push_back(token.token);
    return out;
  }
};

// Fills in the limits that are left at 0.
inline CoreOptions CompleteOptions(sched::SchedulerLimits limits, int64_t num_pages,
                                   const SpeculationOptions& speculation = {}) {
  if (limits.max_model_len == 0) limits.max_model_len = num_pages * kv::kPageTokens;
  if (limits.max_logit_rows == 0) {
    limits.max_logit_rows = limits.max_num_seqs * (1 + speculation.num_drafts) + 8;
  }
  return {.limits = limits,
          .num_pages = num_pages,
          .num_slots = limits.max_num_seqs,
          .eos_tokens = {0},
          .seed = 1,
          .speculation = speculation};
}

class CoreHarness {
 public:
  CoreHarness(sched::SchedulerLimits limits, int64_t num_pages)
      : runner(num_pages, limits.max_num_seqs), core(CompleteOptions(limits, num_pages), runner) {}
  CoreHarness(sched::SchedulerLimits limits, int64_t num_pages,
              const SpeculationOptions& speculation, const FakeDrafter& drafter)
      : runner(num_pages, limits.max_num_seqs, drafter),
        core(CompleteOptions(limits, num_pages, speculation), runner) {}

  RequestId Add(Request request) {
    EXPECT_TRUE(core.CheckRequest(request).ok()) << core.CheckRequest(request);
    const RequestId id = next_id++;
    core.Add(
        id, std::move(request), [this, id](RequestEvent event) { Receive(id, event); },
        Clock::now());
    return id;
  }

  void Receive(RequestId id, RequestEvent& event) {
    Outcome& outcome = outcomes[id];
    EXPECT_EQ(outcome.num_ends, 0) << "an event after the last one";
    ++outcome.num_events;
    outcome.tokens.insert(outcome.tokens.end(), event.tokens.begin(), event.tokens.end());
    if (!event.prompt_logprobs.empty()) {
      EXPECT_TRUE(outcome.prompt_logprobs.empty());
      outcome.prompt_logprobs = std::move(event.prompt_logprobs);
    }
    if (event.finish) {
      outcome.last = event;
      ++outcome.num_ends;
    }
  }

  FakeRunner runner;
  EngineCore core;
  std::map<RequestId, Outcome> outcomes;
  RequestId next_id = 1;
};

inline std::vector<int32_t> RandomPrompt(std::mt19937& rng, int64_t size) {
  std::vector<int32_t> prompt(static_cast<size_t>(size));
  for (int32_t& token : prompt) token = static_cast<int32_t>(rng() % FakeRunner::kVocab);
  return prompt;
}

}  // namespace fulgur::engine

// What the scheduler knows of a request: its tokens, how far they are computed, and its memory.
#pragma once

#include <chrono>
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "kv/page_pool.h"

namespace fulgur::sched {

using Clock = std::chrono::steady_clock;

enum class SequenceState { kNew, kWaiting, kRunning, kFinished };

// Invariants: num_computed < tokens.size() while not finished; pages and slot are held exactly
// while running. Filled in by the engine (first group), then changed by the scheduler only, except
// that the engine appends tokens, counts accepted drafts as computed, and proposes new drafts.
struct Sequence {
  uint64_t id = 0;
  int32_t priority = 0;         // lower runs first; only with Policy::kPriority
  std::vector<int32_t> tokens;  // prompt, then accepted output
  int64_t num_prompt_tokens = 0;
  int64_t max_length = 0;  // prompt and output together, at most
  // Rows from this position on want logits, besides the last token's (prompt log probabilities).
  int64_t logits_from = std::numeric_limits<int64_t>::max();
  std::optional<Clock::time_point> deadline;

  SequenceState state = SequenceState::kNew;
  uint64_t arrival = 0;  // order of Scheduler::Add
  bool aborted = false;
  int64_t num_computed = 0;  // tokens whose rows are in the cache, once the step planned last ran
  std::vector<kv::PageId> pages;  // page i holds tokens [256 i, 256 (i + 1))
  kv::SlotId slot = -1;
  int64_t num_preemptions = 0;
  // Proposed for the positions behind the last token, for the next step to verify. The engine's,
  // and only of sequences that wait for their next token.
  std::vector<int32_t> drafts;

  int64_t length() const { return static_cast<int64_t>(tokens.size()); }
  int64_t remaining() const { return length() - num_computed; }
};

}  // namespace fulgur::sched

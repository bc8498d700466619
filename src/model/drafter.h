// Drafters as the engine sees them: after a step, which of its rows stand, and what may follow.
//
// Positions address every cache, so rejected rows cost nothing: a drafter is told which rows of the
// last step stand and reads no others. Its own context is kept exact in every step, whether drafts
// are wanted or not.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "model/config.h"

namespace fulgur::model {

// What became of one sequence of the step that Forward has just run. Every sequence that goes on
// must be named in every step, once; sequences that have ended or never want drafts are left out.
struct DraftRows {
  int32_t sequence = 0;  // index into that step's batch
  int32_t num_accepted =
      0;                   // its first rows that stand: prompt rows, or last token and drafts; > 0
  int32_t next_token = 0;  // the token behind the last of them: sampled, or the next of the prompt
  int32_t num_drafts = 0;  // 0 .. MaxDrafts; 0: the drafter's context is all that is wanted
};

// Chooses draft tokens; called in the order of the slots of each request, on the thread that called
// Propose.
class DraftChooser {
 public:
  virtual ~DraftChooser() = default;

  // The token of draft `slot` (0: the one behind next_token) of rows[request]. `logits` [V] live
  // until the call returns.
  virtual int32_t Choose(int32_t request, int32_t slot, std::span<const float> logits) = 0;
};

// The drafts of a step: num_drafts of the first request, then those of the next.
struct Drafts {
  std::vector<int32_t> tokens;
  // How likely each draft is accepted if those before it are, in the drafter's own opinion and not
  // calibrated: DSpark's confidence head, which has not seen the token itself; for MTP the share of
  // the token in the sum of its own and the best other token's probability.
  std::vector<float> confidence;
};

}  // namespace fulgur::model

// Arguments of the mixture-of-experts stages: router and grouped experts.
#pragma once

#include <cstdint>
#include <span>

#include "kernels/linear.h"

namespace fulgur::kernels {

// Experts and weights of each row: sqrt(softplus) scores, selection by score + bias (ties: lower
// index first) or by a table, normalised over the selected, then scaled.
struct RouteArgs {
  const float* logits = nullptr;  // [T, E]
  int64_t rows = 0;
  int64_t num_experts = 0;
  int64_t top_k = 0;
  const float* bias = nullptr;             // [E]; null in hash layers
  const int32_t* token_experts = nullptr;  // [V, top_k]; hash layers only
  const int32_t* tokens = nullptr;         // [T]
  bool normalize = true;
  float scale = 1.0F;
  int32_t* experts = nullptr;  // [T, top_k]
  float* weights = nullptr;    // [T, top_k]
};

// One expert and the slots [first_slot, first_slot + num_slots) that it computes. A slot is one
// (row, expert) pair.
struct ExpertTask {
  const PackedLinear* gate = nullptr;  // [F, H]
  const PackedLinear* up = nullptr;    // [F, H]
  const PackedLinear* down = nullptr;  // [H, F]
  int32_t first_slot = 0;
  int32_t num_slots = 0;
};

// expert_gate_up: h[slot] = weight silu(min(gate x, limit)) clamp(up x, -limit, limit).
// expert_down: out[row] = sum over the row's slots of down h[slot], in the order of `tasks`.
struct ExpertArgs {
  std::span<const ExpertTask> tasks = {};
  const int32_t* slot_row = nullptr;   // [slots] the row of x and out
  const float* slot_weight = nullptr;  // [slots] routing weight; 1 for a shared expert
  ActivationRows x = {};               // [T, H] in every representation that some expert reads
  float swiglu_limit = 0.0F;           // 0: no clamp
  int64_t expert_size = 0;             // F
  float* h = nullptr;                  // [slots, F], written by expert_gate_up
  ActivationRows h_rows = {};          // h as the down projections read it (norm_rows between)
  float* out = nullptr;                // [T, H], overwritten by expert_down
  int64_t rows = 0;                    // T
};

}  // namespace fulgur::kernels

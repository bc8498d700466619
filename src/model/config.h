// The dimensions and constants of a DeepSeek-V4 checkpoint, read from its config.json. Nothing else
// decides a size.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace fulgur::model {

// YaRN (arXiv:2309.00071) as configured for the compressed layers.
struct RopeScaling {
  float factor = 1.0F;  // 1: no scaling
  int64_t original_max_position = 0;
  float beta_fast = 32.0F;
  float beta_slow = 1.0F;
};

// The kinds of draft models that checkpoints carry.
enum class DrafterKind {
  kNone,
  kMtp,     // multi-token prediction: one block, fed its own output for every further draft
  kDspark,  // stages that fill a block of positions at once, and a Markov chain over its tokens
};

struct DsparkConfig {
  int64_t block_size = 0;  // 0: the checkpoint has no DSpark stages
  int32_t noise_token = 0;
  std::vector<int64_t> target_layers;  // ascending
  int64_t markov_rank = 0;
};

struct ModelConfig {
  int64_t hidden_size = 0;
  int64_t num_layers = 0;
  int64_t vocab_size = 0;
  int64_t max_position = 0;

  int64_t num_heads = 0;
  int64_t head_dim = 0;  // one latent head is key and value of all query heads
  int64_t rope_dim = 0;  // the last dims of a head
  int64_t q_lora_rank = 0;
  int64_t o_lora_rank = 0;
  int64_t o_groups = 0;
  int64_t sliding_window = 0;
  std::vector<int64_t> compress_ratios;  // [num_layers + draft blocks]: 0, 4 or 128; never 1

  int64_t index_heads = 0;
  int64_t index_head_dim = 0;
  int64_t index_topk = 0;

  int64_t num_experts = 0;
  int64_t num_shared_experts = 0;
  int64_t experts_per_token = 0;
  int64_t expert_size = 0;
  int64_t num_hash_layers = 0;
  float routed_scaling_factor = 1.0F;
  bool norm_topk_prob = true;
  float swiglu_limit = 0.0F;  // 0: no clamp

  int64_t hc_mult = 0;  // residual streams (hyper-connections)
  int64_t hc_sinkhorn_iters = 0;
  float hc_eps = 0.0F;
  float rms_norm_eps = 0.0F;

  float rope_theta = 0.0F;           // layers without compression, never scaled
  float compress_rope_theta = 0.0F;  // compressed layers, with rope_scaling
  RopeScaling rope_scaling;

  int32_t bos_token = 0;
  std::vector<int32_t> eos_tokens;

  // The drafter that is loaded (UseDrafter in drafter_source.h); none as parsed, when
  // num_draft_blocks is num_nextn_predict_layers, which is wrong where there are DSpark stages.
  DrafterKind drafter = DrafterKind::kNone;
  int64_t num_draft_blocks = 0;
  DsparkConfig dspark;

  int64_t Ratio(int64_t layer) const { return compress_ratios[static_cast<size_t>(layer)]; }
  bool IsHashLayer(int64_t layer) const { return layer < num_hash_layers; }
  int64_t NumDraftLayers() const { return drafter == DrafterKind::kNone ? 0 : num_draft_blocks; }
};

// Parses and checks a config.json. Errors name the field, its value and what is accepted.
absl::StatusOr<ModelConfig> ParseConfig(std::string_view json);

// Reads <folder>/config.json.
absl::StatusOr<ModelConfig> LoadConfig(const std::string& folder);

}  // namespace fulgur::model

#include "model/drafter_source.h"

#include <array>
#include <string>
#include <string_view>
#include <utility>

#include "base/status_macros.h"
#include "fmt/format.h"

namespace fulgur::model {
namespace {

// Blocks are numbered from 0 without gaps.
int64_t CountBlocks(const Checkpoint& checkpoint) {
  int64_t blocks = 0;
  while (checkpoint.Find(fmt::format("mtp.{}.attn_norm.weight", blocks)) != nullptr) ++blocks;
  return blocks;
}

absl::Status CheckStages(const Checkpoint& checkpoint, int64_t stages) {
  const DsparkConfig& dspark = checkpoint.config().dspark;
  if (dspark.block_size == 0) {
    return absl::InvalidArgumentError(
        fmt::format("{} has DSpark stages (mtp.0.main_proj), but its config.json has no "
                    "\"dspark_block_size\"",
                    checkpoint.folder()));
  }
  const auto targets = static_cast<int64_t>(dspark.target_layers.size());
  if (targets == stages) return absl::OkStatus();
  return absl::InvalidArgumentError(fmt::format(
      "{} has {} DSpark stages (mtp.0 to mtp.{}), but \"dspark_target_layer_ids\" of its "
      "config.json names {} layers; there must be one for each stage",
      checkpoint.folder(), stages, stages - 1, targets));
}

absl::Status CheckMtpBlocks(const Checkpoint& checkpoint, int64_t blocks) {
  if (blocks == 1) return absl::OkStatus();
  return absl::UnimplementedError(fmt::format(
      "{} has {} MTP blocks (mtp.0 to mtp.{}); the only number that this program runs is 1",
      checkpoint.folder(), blocks, blocks - 1));
}

// Entries behind those of the layers belong to the draft blocks, where they are given.
absl::Status CheckUncompressed(const Checkpoint& checkpoint, int64_t blocks) {
  const ModelConfig& config = checkpoint.config();
  for (int64_t i = 0; i < blocks; ++i) {
    const int64_t layer = config.num_layers + i;
    if (layer >= static_cast<int64_t>(config.compress_ratios.size())) break;
    if (config.Ratio(layer) == 0) continue;
    return absl::InvalidArgumentError(
        fmt::format("{}/config.json: \"compress_ratios\" has {} for draft block mtp.{}; expected 0",
                    checkpoint.folder(), config.Ratio(layer), i));
  }
  return absl::OkStatus();
}

std::string_view MethodOf(DrafterKind kind) {
  return kind == DrafterKind::kDspark ? "dspark" : "mtp";
}

std::string_view Describe(DrafterKind kind) {
  return kind == DrafterKind::kDspark ? "DSpark stages" : "an MTP block";
}

absl::Status CheckKind(const Checkpoint& source, DrafterKind found,
                       std::optional<DrafterKind> wanted) {
  if (found == DrafterKind::kNone) {
    return absl::InvalidArgumentError(
        fmt::format("{} carries no drafter (no tensors \"mtp.*\"): speculative decoding needs a "
                    "checkpoint with one, or \"model\" in --speculative-config naming its folder",
                    source.folder()));
  }
  if (!wanted.has_value() || found == *wanted) return absl::OkStatus();
  return absl::InvalidArgumentError(
      fmt::format("{} has {}, so the method \"{}\" cannot be used; use method \"{}\"",
                  source.folder(), Describe(found), MethodOf(*wanted), MethodOf(found)));
}

// What a draft block shares with the main model: its input, its caches and its scratch memory.
absl::Status CheckSameDimensions(const ModelConfig& main, const Checkpoint& source) {
  const ModelConfig& draft = source.config();
  const auto same = [&](const char* name, auto main_value, auto draft_value) -> absl::Status {
    if (main_value == draft_value) return absl::OkStatus();
    return absl::InvalidArgumentError(
        fmt::format("{}/config.json: \"{}\" is {}, but the model that it would draft for has {}",
                    source.folder(), name, draft_value, main_value));
  };
  const std::array<std::pair<const char*, int64_t ModelConfig::*>, 14> fields = {
      {{"hidden_size", &ModelConfig::hidden_size},
       {"vocab_size", &ModelConfig::vocab_size},
       {"num_attention_heads", &ModelConfig::num_heads},
       {"head_dim", &ModelConfig::head_dim},
       {"qk_rope_head_dim", &ModelConfig::rope_dim},
       {"q_lora_rank", &ModelConfig::q_lora_rank},
       {"o_lora_rank", &ModelConfig::o_lora_rank},
       {"o_groups", &ModelConfig::o_groups},
       {"sliding_window", &ModelConfig::sliding_window},
       {"n_routed_experts", &ModelConfig::num_experts},
       {"num_experts_per_tok", &ModelConfig::experts_per_token},
       {"moe_intermediate_size", &ModelConfig::expert_size},
       {"hc_mult", &ModelConfig::hc_mult},
       {"hc_sinkhorn_iters", &ModelConfig::hc_sinkhorn_iters}}};
  for (const auto& [name, field] : fields) RETURN_IF_ERROR(same(name, main.*field, draft.*field));
  const std::array<std::pair<const char*, float ModelConfig::*>, 5> numbers = {
      {{"rope_theta", &ModelConfig::rope_theta},
       {"routed_scaling_factor", &ModelConfig::routed_scaling_factor},
       {"swiglu_limit", &ModelConfig::swiglu_limit},
       {"hc_eps", &ModelConfig::hc_eps},
       {"rms_norm_eps", &ModelConfig::rms_norm_eps}}};
  for (const auto& [name, field] : numbers) RETURN_IF_ERROR(same(name, main.*field, draft.*field));
  RETURN_IF_ERROR(same("norm_topk_prob", main.norm_topk_prob, draft.norm_topk_prob));
  return same("num_hidden_layers", main.num_layers, draft.num_layers);
}

}  // namespace

absl::StatusOr<FoundDrafter> FindDrafter(const Checkpoint& checkpoint) {
  FoundDrafter found;
  found.blocks = CountBlocks(checkpoint);
  if (found.blocks == 0) return found;
  const bool dspark = checkpoint.Find("mtp.0.main_proj.weight") != nullptr;
  found.kind = dspark ? DrafterKind::kDspark : DrafterKind::kMtp;
  RETURN_IF_ERROR(dspark ? CheckStages(checkpoint, found.blocks)
                         : CheckMtpBlocks(checkpoint, found.blocks));
  RETURN_IF_ERROR(CheckUncompressed(checkpoint, found.blocks));
  return found;
}

absl::StatusOr<ModelConfig> UseDrafter(ModelConfig main, const Checkpoint& source,
                                       std::optional<DrafterKind> wanted) {
  ASSIGN_OR_RETURN(const FoundDrafter found, FindDrafter(source));
  RETURN_IF_ERROR(CheckKind(source, found.kind, wanted));
  RETURN_IF_ERROR(CheckSameDimensions(main, source));
  main.drafter = found.kind;
  main.num_draft_blocks = found.blocks;
  main.dspark = source.config().dspark;
  return main;
}

int64_t TrainedDrafts(const ModelConfig& config) {
  if (config.drafter == DrafterKind::kDspark) return config.dspark.block_size;
  return config.NumDraftLayers();
}

}  // namespace fulgur::model

#include "model/tensor_map.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace fulgur::model {
namespace {

using kernels::WeightFormat;

// The sizes of DeepSeek-V4-Flash-0731.
ModelConfig Flash() {
  ModelConfig config;
  config.hidden_size = 4096;
  config.num_layers = 43;
  config.vocab_size = 129280;
  config.num_heads = 64;
  config.head_dim = 512;
  config.rope_dim = 64;
  config.q_lora_rank = 1024;
  config.o_lora_rank = 1024;
  config.o_groups = 8;
  config.compress_ratios = {0, 0};
  for (int i = 0; i < 20; ++i)
    config.compress_ratios.insert(config.compress_ratios.end(), {4, 128});
  config.compress_ratios.insert(config.compress_ratios.end(), {4, 0, 0, 0});
  config.index_heads = 64;
  config.index_head_dim = 128;
  config.num_experts = 256;
  config.num_shared_experts = 1;
  config.experts_per_token = 6;
  config.expert_size = 2048;
  config.num_hash_layers = 3;
  config.hc_mult = 4;
  config.dspark.block_size = 5;
  config.dspark.target_layers = {40, 41, 42};
  config.dspark.markov_rank = 256;
  return config;
}

struct Totals {
  int64_t tensors = 0;
  int64_t bytes = 0;
};

void AddLinear(const TensorSlot& slot, Totals& totals) {
  const int64_t count = slot.out() * slot.in();
  if (slot.official == WeightFormat::kF32) totals.bytes += 4 * count;
  if (slot.official == WeightFormat::kBf16) totals.bytes += 2 * count;
  if (slot.official == WeightFormat::kFp8Block) totals.bytes += count + count / (128 * 128);
  if (slot.official == WeightFormat::kFp4) totals.bytes += count / 2 + count / 32;
  const bool scaled =
      slot.official == WeightFormat::kFp8Block || slot.official == WeightFormat::kFp4;
  totals.tensors += scaled ? 2 : 1;
}

// Tensors and bytes as the official files store the slots: norms bf16, other vectors fp32.
Totals OfficialTotals(const std::vector<TensorSlot>& slots) {
  Totals totals;
  for (const TensorSlot& slot : slots) {
    if (slot.optional) continue;
    if (slot.kind == TensorKind::kLinear || slot.kind == TensorKind::kFloatLinear) {
      AddLinear(slot, totals);
      continue;
    }
    int64_t bytes = slot.kind == TensorKind::kExpertTable ? 8 : 4;
    if (slot.kind == TensorKind::kEmbedding || slot.name.ends_with("norm.weight") ||
        slot.name.ends_with("confidence_head.proj.weight")) {
      bytes = 2;
    }
    for (const int64_t size : slot.shape) bytes *= size;
    totals.bytes += bytes;
    ++totals.tensors;
  }
  return totals;
}

std::vector<TensorSlot> Drafter(DrafterKind kind, int64_t blocks) {
  static DrafterWeights weights;
  ModelConfig config = Flash();
  config.drafter = kind;
  config.num_draft_blocks = blocks;
  return DrafterTensors(config, weights);
}

// 72,317 tensors and 166,878,536,440 bytes are published for the whole checkpoint.
TEST(TensorMap, HasThePublishedTotals) {
  Weights weights;
  const Totals main = OfficialTotals(MainTensors(Flash(), weights));
  EXPECT_EQ(main.tensors, 67612);
  EXPECT_EQ(main.bytes, 156015698140);
  const Totals dspark = OfficialTotals(Drafter(DrafterKind::kDspark, 3));
  EXPECT_EQ(main.tensors + dspark.tensors, 72317);
  EXPECT_EQ(main.bytes + dspark.bytes, 166878536440);
  const Totals mtp = OfficialTotals(Drafter(DrafterKind::kMtp, 1));
  EXPECT_EQ(main.tensors + mtp.tensors, 69187);
  EXPECT_EQ(main.bytes + mtp.bytes, 159609485896);
}

TEST(TensorMap, NamesEveryTensorOnceAndGivesItAPlace) {
  Weights weights;
  for (const auto& [kind, blocks] :
       {std::pair(DrafterKind::kDspark, 3), std::pair(DrafterKind::kMtp, 1)}) {
    std::vector<TensorSlot> slots = MainTensors(Flash(), weights);
    std::ranges::move(Drafter(kind, blocks), std::back_inserter(slots));
    std::set<std::string> names;
    for (const TensorSlot& slot : slots) {
      EXPECT_TRUE(names.insert(slot.name).second) << slot.name;
      EXPECT_TRUE(std::visit([](auto* to) { return to != nullptr; }, slot.to)) << slot.name;
    }
  }
}

}  // namespace
}  // namespace fulgur::model

#include "model/dummy_weights.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/packed_layout.h"
#include "model/tensor_map.h"

namespace fulgur::model {
namespace {

using kernels::PackedLinear;
using kernels::WeightFormat;

ModelConfig SmallConfig() {
  ModelConfig config;
  config.hidden_size = 128;
  config.num_layers = 3;
  config.vocab_size = 100;
  config.num_heads = 4;
  config.head_dim = 64;
  config.rope_dim = 32;
  config.q_lora_rank = 64;
  config.o_lora_rank = 96;
  config.o_groups = 2;
  config.compress_ratios = {0, 4, 128};
  config.index_heads = 4;
  config.index_head_dim = 32;
  config.num_experts = 6;
  config.num_shared_experts = 1;
  config.experts_per_token = 2;
  config.expert_size = 64;
  config.num_hash_layers = 1;
  config.hc_mult = 4;
  return config;
}

std::vector<std::byte> ArenaBytes(const Weights& weights) {
  const PackedLinear& head = weights.head;
  std::vector<std::byte> bytes(head.bytes.begin(), head.bytes.end());
  for (const Layer& layer : weights.layers) {
    for (const Expert& expert : layer.moe.experts) {
      bytes.insert(bytes.end(), expert.down.bytes.begin(), expert.down.bytes.end());
    }
    bytes.insert(bytes.end(), layer.attention.wq_b.bytes.begin(), layer.attention.wq_b.bytes.end());
  }
  return bytes;
}

Weights Make(const DummyOptions& options) {
  absl::StatusOr<Weights> weights = MakeDummyWeights(SmallConfig(), options);
  EXPECT_TRUE(weights.ok()) << weights.status();
  return *std::move(weights);
}

TEST(DummyWeights, HaveTheOfficialFormatsWhereTheyFit) {
  const Weights weights = Make({});
  const Layer& layer = weights.layers[1];
  EXPECT_EQ(layer.attention.wq_a.format, WeightFormat::kFp8Block);
  EXPECT_EQ(layer.attention.wo_a[0].format, WeightFormat::kBf16);  // 96 rows cut a scale block
  EXPECT_EQ(layer.attention.indexer.weights_proj.format, WeightFormat::kBf16);
  EXPECT_EQ(layer.moe.experts[5].up.format, WeightFormat::kFp4);
  EXPECT_EQ(layer.moe.shared[0].up.format, WeightFormat::kFp8Block);
  EXPECT_EQ(layer.moe.router.format, WeightFormat::kF32);
  EXPECT_EQ(weights.embed.bf16.size(), 100U * 128);
  EXPECT_GT(weights.storage->size_bytes(), 0);
}

TEST(DummyWeights, DependOnTheSeedAndNotOnTheThreads) {
  const std::vector<std::byte> bytes = ArenaBytes(Make({.num_threads = 1, .seed = 7}));
  EXPECT_TRUE(ArenaBytes(Make({.num_threads = 3, .seed = 7})) == bytes);
  EXPECT_FALSE(ArenaBytes(Make({.num_threads = 1, .seed = 8})) == bytes);
}

TEST(DummyWeights, ChooseDifferentExpertsForEachToken) {
  const Weights weights = Make({});
  const auto& table = weights.layers[0].moe.token_experts;
  ASSERT_EQ(table.size(), 200U);
  for (size_t token = 0; token < 100; ++token) {
    const std::set<int32_t> chosen = {table[2 * token], table[2 * token + 1]};
    EXPECT_EQ(chosen.size(), 2U);
    EXPECT_GE(*chosen.begin(), 0);
    EXPECT_LT(*chosen.rbegin(), 6);
  }
}

// Root mean square of every linear times the square root of its inputs: activations keep their
// size.
TEST(DummyWeights, KeepActivationsNearOne) {
  Weights weights = Make({.precision = Precision::kReference, .num_threads = 2});
  for (const TensorSlot& slot : MainTensors(SmallConfig(), weights)) {
    const auto* linear = std::get_if<PackedLinear*>(&slot.to);
    if (linear == nullptr) continue;
    const auto* values = reinterpret_cast<const float*>((*linear)->bytes.data());
    const size_t count = (*linear)->bytes.size() / sizeof(float);
    double squares = 0;
    for (size_t i = 0; i < count; ++i) squares += static_cast<double>(values[i]) * values[i];
    const double gain = std::sqrt(squares / static_cast<double>(slot.out()));
    EXPECT_GT(gain, 0.5) << slot.name;
    EXPECT_LT(gain, 2.0) << slot.name;
  }
  for (const float value : weights.embed.f32) EXPECT_LT(std::fabs(value), 4.0F);
}

}  // namespace
}  // namespace fulgur::model

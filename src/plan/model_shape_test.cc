#include "plan/model_shape.h"

#include <gtest/gtest.h>

#include "model/testing/tiny_model.h"

namespace fulgur::plan {
namespace {

ModelShape FlashShape() {
  const auto config = model::LoadConfig("src/plan/testdata/deepseek_v4_flash");
  EXPECT_TRUE(config.ok()) << config.status();
  return ShapeOfConfig(*config);
}

// The published checkpoint has 156.0 GB; in memory the router and the embeddings stay as they are,
// the ids of hash layers take half, panels are padded a little.
TEST(ModelShape, KnowsTheBytesOfTheRealModel) {
  const ModelShape shape = FlashShape();
  EXPECT_NEAR(static_cast<double>(shape.weight_bytes), 156.0e9, 1.0e9);
  ASSERT_EQ(shape.weights.layers.size(), 43U);
  const model::Moe& moe = shape.weights.layers[3].moe;
  ASSERT_EQ(moe.experts.size(), 256U);
  const model::Expert& expert = moe.experts[7];
  EXPECT_DOUBLE_EQ(WeightsOf(expert.gate) + WeightsOf(expert.up) + WeightsOf(expert.down),
                   25'165'824.0);
  EXPECT_NEAR(static_cast<double>(BytesOf(expert.gate) + BytesOf(expert.up) + BytesOf(expert.down)),
              13'369'344.0, 200'000.0);
}

TEST(ModelShape, HasTheMatricesOfEachKindOfLayer) {
  const ModelShape shape = FlashShape();
  const auto& layers = shape.weights.layers;
  EXPECT_EQ(BytesOf(layers[0].attention.compressor.wkv), 0);
  EXPECT_GT(BytesOf(layers[3].attention.compressor.wkv), 0);
  EXPECT_EQ(BytesOf(layers[3].attention.indexer.wq_b), 0);
  EXPECT_GT(BytesOf(layers[2].attention.indexer.wq_b), 0);
  EXPECT_EQ(layers[2].attention.wo_a.size(), 8U);
  EXPECT_EQ(layers[2].attention.wq_b.format, kernels::WeightFormat::kFp8Block);
  EXPECT_EQ(layers[2].moe.router.format, kernels::WeightFormat::kF32);
}

// What the loader really lays out.
TEST(ModelShape, AgreesWithLoadedWeights) {
  const model::ModelConfig config = model::testing::TinyConfig();
  const model::Weights loaded =
      model::testing::MakeWeights(config, model::testing::Storage::kFp8Fp4, false);
  const ModelShape shape = ShapeOfConfig(config);
  for (size_t i = 0; i < loaded.layers.size(); ++i) {
    const model::Layer& real = loaded.layers[i];
    const model::Layer& planned = shape.weights.layers[i];
    const auto same = [i](const kernels::PackedLinear& a, const kernels::PackedLinear& b) {
      EXPECT_EQ(BytesOf(a), static_cast<int64_t>(b.bytes.size())) << "layer " << i;
    };
    same(planned.attention.wq_a, real.attention.wq_a);
    same(planned.attention.wq_b, real.attention.wq_b);
    same(planned.attention.wo_b, real.attention.wo_b);
    same(planned.attn_hc.fn, real.attn_hc.fn);
    same(planned.moe.router, real.moe.router);
    same(planned.moe.experts[0].down, real.moe.experts[0].down);
    same(planned.moe.shared[0].gate, real.moe.shared[0].gate);
  }
}

TEST(ModelShape, ReadsTheFormatsOfACheckpoint) {
  const auto checkpoint = model::Checkpoint::Open("models/demo-bf16");
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
  const auto shape = ShapeOfCheckpoint(*checkpoint);
  ASSERT_TRUE(shape.ok()) << shape.status();
  EXPECT_EQ(shape->weights.layers[0].attention.wq_b.format, kernels::WeightFormat::kBf16);
  EXPECT_GT(shape->weight_bytes, ShapeOfConfig(checkpoint->config()).weight_bytes);
}

}  // namespace
}  // namespace fulgur::plan

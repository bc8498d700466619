#include "plan/roofline.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "model/model.h"

namespace fulgur::plan {
namespace {

class RooflineTest : public ::testing::Test {
 protected:
  RooflineTest()
      : shape_(ShapeOfConfig(*model::LoadConfig("src/plan/testdata/deepseek_v4_flash"))),
        layout_(model::CacheLayout(shape_.config, model::Precision::kNative, 0)),
        machine_(*ParseMachine("cores: 48\nmemory_gb: 768\nread_gbps: 300\n", "test")) {}

  StepTime Decode(int64_t sequences, int64_t context) const {
    return PredictStep(shape_, layout_,
                       {.sequences = sequences, .context = context, .logit_rows = sequences},
                       machine_);
  }

  std::map<StageKind, double> BytesByKind(const StepShape& step) const {
    std::map<StageKind, double> bytes;
    for (const StageWork& stage : WorkOfStep(shape_, layout_, step)) {
      bytes[stage.kind] += stage.bytes();
    }
    return bytes;
  }

  const ModelShape shape_;
  const kv::Layout layout_;
  MachineFigures machine_;
};

// 13.3 G parameters are active for a token, two operations each, besides attention.
TEST_F(RooflineTest, OneTokenReadsTheActiveParameters) {
  const StepTime time = Decode(1, 0);
  EXPECT_NEAR(time.ops, 2 * 13.27e9, 0.05 * 2 * 13.27e9);
  const auto bytes = BytesByKind({});
  // 43 layers of 6 routed experts of 13.37 MB and a shared one of 25.2 MB.
  EXPECT_NEAR(bytes.at(StageKind::kExperts), 43 * (6 * 13.37e6 + 25.2e6), 50e6);
  EXPECT_NEAR(bytes.at(StageKind::kHead), 129280.0 * 4096 * 2, 3e6);
  EXPECT_EQ(bytes.count(StageKind::kIndex), 0U);  // all entries are taken
}

TEST_F(RooflineTest, CountsIndexAndAttentionByContext) {
  constexpr int64_t kContext = 1 << 20;
  const double per_key = 128 + 4;  // int8 and a scale
  const auto bytes = BytesByKind({.context = kContext - 1});
  EXPECT_NEAR(bytes.at(StageKind::kIndex), 21 * (kContext / 4) * per_key, 1e3);
  // Ratio 0: the window. 4: and 512 chosen entries. 128: and all entries.
  const double keys = 43 * 128 + 21 * 512 + 20 * (kContext / 128);
  EXPECT_NEAR(bytes.at(StageKind::kAttention), keys * 1024, 1e3);
}

TEST_F(RooflineTest, SequencesShareWeightsButNotMemory) {
  const auto one = BytesByKind({.sequences = 1, .context = 4095});
  const auto many = BytesByKind({.sequences = 16, .context = 4095, .logit_rows = 16});
  EXPECT_DOUBLE_EQ(one.at(StageKind::kQueries), many.at(StageKind::kQueries));
  EXPECT_DOUBLE_EQ(16 * one.at(StageKind::kAttention), many.at(StageKind::kAttention));
  // 16 tokens keep 256 (1 - (250 / 256)^16) = 80.7 of the experts busy, not 96.
  const double shared = 25.2e6 * 43;
  const double ratio =
      (many.at(StageKind::kExperts) - shared) / (one.at(StageKind::kExperts) - shared);
  EXPECT_NEAR(ratio, 256 * (1 - std::pow(250.0 / 256, 16)) / 6, 0.05);
}

TEST_F(RooflineTest, RowsOfAPromptShareKeys) {
  const auto bytes = BytesByKind({.rows_each = 512, .context = 0});
  EXPECT_LT(bytes.at(StageKind::kAttention), 43.0 * (128 + 512 + 128) * 1024);
}

TEST_F(RooflineTest, CountsTheKeysOfEveryRow) {
  for (const auto& [context, rows] : {std::pair{0, 5}, {100, 200}, {2000, 300}, {7000, 1}}) {
    double ops = 0.0;  // of the attention of all layers
    const StepShape step{.rows_each = rows, .context = context};
    for (const StageWork& stage : WorkOfStep(shape_, layout_, step)) ops += stage.attention_ops;
    double keys = 0.0;
    for (int64_t layer = 0; layer < shape_.config.num_layers; ++layer) {
      const int64_t ratio = shape_.config.Ratio(layer);
      for (int64_t known = context + 1; known <= context + rows; ++known) {
        keys += static_cast<double>(std::min<int64_t>(known, 128));
        if (ratio == 4) keys += static_cast<double>(std::min<int64_t>(known / 4, 512));
        if (ratio == 128) keys += static_cast<double>(known / 128);
      }
    }
    EXPECT_DOUBLE_EQ(ops, 4 * 64 * 512 * keys) << context << " + " << rows;
  }
}

TEST_F(RooflineTest, DecodingOneSequenceIsBoundByMemory) {
  const StepTime time = Decode(1, 4096);
  EXPECT_GT(time.seconds, time.bytes / machine_.read_rate);
  EXPECT_LT(time.seconds, 2.5 * time.bytes / machine_.read_rate);
}

TEST_F(RooflineTest, MoreWorkTakesLonger) {
  EXPECT_LT(Decode(1, 4096).seconds, Decode(4, 4096).seconds);
  EXPECT_LT(Decode(4, 4096).seconds, Decode(16, 4096).seconds);
  EXPECT_LT(Decode(16, 4096).seconds, 16 * Decode(1, 4096).seconds);
  EXPECT_LT(Decode(1, 4096).seconds, Decode(1, 1 << 20).seconds);
  const double prompt = PredictPrompt(shape_, layout_, 4096, 2048, machine_);
  EXPECT_LT(prompt, 4096 * Decode(1, 0).seconds);
  EXPECT_LT(PredictPrompt(shape_, layout_, 2048, 2048, machine_), prompt);
}

TEST_F(RooflineTest, AStageThatCannotBeSplitTakesOneCore) {
  StageWork stage;
  stage.cache_bytes = 1e9;
  stage.units = 1;
  EXPECT_NEAR(TimeOf(stage, machine_).total, 1e9 / machine_.core_read_rate, 2e-5);
  stage.units = 48;
  EXPECT_NEAR(TimeOf(stage, machine_).total, 1e9 / machine_.read_rate, 2e-5);
}

}  // namespace
}  // namespace fulgur::plan

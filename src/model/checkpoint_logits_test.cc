// Every checkpoint format gives the logits that an independent program computes from the stored
// tensors.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "base/machine.h"
#include "model/checkpoint.h"
#include "model/drafter_source.h"
#include "model/testing/checkpoints.h"
#include "model/testing/test_model.h"
#include "model/weight_loader.h"

namespace fulgur::model {
namespace {

using testing::CheckpointPath;
using testing::TestModel;
using testing::TestModelOptions;

constexpr double kTolerance = 2e-5;

class CheckpointLogits : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    std::ifstream file(CheckpointPath(GetParam(), ".golden.json"));
    golden_ = nlohmann::json::parse(file);
    tokens_ = golden_.at("tokens").get<std::vector<int32_t>>();
  }

  std::vector<float> Logits(Precision precision, kernels::OpChoice ops) const {
    const auto checkpoint = Checkpoint::Open(CheckpointPath(GetParam()));
    EXPECT_TRUE(checkpoint.ok()) << checkpoint.status();
    auto weights = LoadWeights(*checkpoint, {.precision = precision, .progress = nullptr});
    EXPECT_TRUE(weights.ok()) << weights.status();
    TestModelOptions options;
    options.precision = precision;
    options.ops = ops;
    TestModel model(checkpoint->config(), *std::move(weights), options);
    return model.Run(0, tokens_, {128});
  }

  nlohmann::json golden_;
  std::vector<int32_t> tokens_;
};

TEST_P(CheckpointLogits, ReferencePrecisionGivesGoldenLogits) {
  const std::vector<float> logits = Logits(Precision::kReference, kernels::OpChoice::kScalar);
  for (const auto& [key, position] : golden_.at("modes").at("A").at("positions").items()) {
    const auto expected = position.at("logits").get<std::vector<float>>();
    const float* row = logits.data() + std::stoul(key) * expected.size();
    for (size_t i = 0; i < expected.size(); ++i) {
      ASSERT_NEAR(row[i], expected[i], kTolerance) << "position " << key << ", token " << i;
    }
  }
}

// Rounding of activations differs from that of the program that made the golden logits, and random
// weights amplify it: only most positions can be near.
TEST_P(CheckpointLogits, NativePrecisionStaysNear) {
  for (const kernels::OpChoice ops : {kernels::OpChoice::kScalar, kernels::OpChoice::kAvx512}) {
    if (!kernels::Supports(base::DetectMachine(), ops)) continue;
    const std::vector<float> logits = Logits(Precision::kNative, ops);
    std::vector<double> cosines;
    for (const auto& [key, position] : golden_.at("modes").at("A").at("positions").items()) {
      const auto expected = position.at("logits").get<std::vector<float>>();
      const float* row = logits.data() + std::stoul(key) * expected.size();
      double products = 0;
      double squares = 0;
      double expected_squares = 0;
      for (size_t i = 0; i < expected.size(); ++i) {
        products += static_cast<double>(row[i]) * expected[i];
        squares += static_cast<double>(row[i]) * row[i];
        expected_squares += static_cast<double>(expected[i]) * expected[i];
      }
      cosines.push_back(products / std::sqrt(squares * expected_squares));
    }
    std::sort(cosines.begin(), cosines.end());
    EXPECT_GE(cosines[cosines.size() / 2], 0.995);
    EXPECT_GE(cosines[0], 0.7);
  }
}

// Checkpoints with a drafter: greedy drafts behind the golden tokens.
class CheckpointDrafts : public CheckpointLogits {};

TEST_P(CheckpointDrafts, ReferencePrecisionGivesGoldenDrafts) {
  const nlohmann::json& mode = golden_.at("modes").at("A");
  const char* name = mode.contains("dspark") ? "dspark" : "mtp_drafts";
  const nlohmann::json& expected = mode.at(name);
  const auto checkpoint = Checkpoint::Open(CheckpointPath(GetParam()));
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
  const auto config = UseDrafter(checkpoint->config(), *checkpoint);
  ASSERT_TRUE(config.ok()) << config.status();
  auto weights = LoadWeights(
      *checkpoint,
      {.precision = Precision::kReference, .drafter = &*checkpoint, .progress = nullptr});
  ASSERT_TRUE(weights.ok()) << weights.status();
  const auto num_drafts = static_cast<int32_t>(expected.at("drafts").size());
  TestModel model(*config, *std::move(weights), {.lookahead = num_drafts});
  const std::span<const int32_t> rows = std::span(tokens_).first(tokens_.size() - 1);
  model.Step({{0, 0, rows}});
  const DraftRows accepted = {0, static_cast<int32_t>(rows.size()), tokens_.back(), num_drafts};
  const TestModel::Proposal proposal = model.Propose({&accepted, 1});
  EXPECT_EQ(proposal.drafts.tokens, expected.at("drafts").get<std::vector<int32_t>>());
  const auto width = static_cast<size_t>(model.vocab_size());
  for (size_t i = 0; i < proposal.logits.size(); ++i) {
    ASSERT_NEAR(proposal.logits[i], expected.at("logits")[i / width][i % width].get<float>(),
                kTolerance)
        << "draft " << i / width << ", token " << i % width;
  }
  if (std::string(name) == "mtp_drafts") return;
  for (size_t i = 0; i < proposal.drafts.confidence.size(); ++i) {
    const double logit = expected.at("confidence_logits")[i].get<double>();
    EXPECT_NEAR(proposal.drafts.confidence[i], 1.0 / (1.0 + std::exp(-logit)), kTolerance);
  }
}

INSTANTIATE_TEST_SUITE_P(Formats, CheckpointDrafts,
                         ::testing::Values("bf16", "fp8fp4", "fp8fp4_dspark", "w8a8_recipe_a",
                                           "w8a8_recipe_b"),
                         [](const auto& info) { return std::string(info.param); });

INSTANTIATE_TEST_SUITE_P(Formats, CheckpointLogits, ::testing::ValuesIn(testing::kCheckpointNames),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace fulgur::model

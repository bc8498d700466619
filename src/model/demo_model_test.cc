// The model in the box computes what it computed in PyTorch when it was trained.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "model/checkpoint.h"
#include "model/testing/test_model.h"
#include "model/weight_loader.h"

namespace fulgur::model {
namespace {

using testing::TestModel;
using testing::TestModelOptions;

constexpr const char* kGolden = "tests/data/demo_golden.json";
constexpr const char* kFolder = "models/demo-bf16";

std::unique_ptr<TestModel> Load(Precision precision) {
  const auto checkpoint = Checkpoint::Open(kFolder);
  EXPECT_TRUE(checkpoint.ok()) << checkpoint.status();
  auto weights = LoadWeights(*checkpoint, {.precision = precision, .progress = nullptr});
  EXPECT_TRUE(weights.ok()) << weights.status();
  TestModelOptions options;
  options.precision = precision;
  options.max_sequences = 1;
  return std::make_unique<TestModel>(checkpoint->config(), *std::move(weights), options);
}

std::vector<float> LastRow(const std::vector<float>& logits, int64_t vocabulary) {
  return {logits.end() - vocabulary, logits.end()};
}

int32_t ArgMax(const std::vector<float>& row) {
  return static_cast<int32_t>(std::max_element(row.begin(), row.end()) - row.begin());
}

// Greedy tokens, at most `count` or up to the end of sequence, which is included.
std::vector<int32_t> Continue(TestModel& model, std::vector<int32_t> tokens, size_t count) {
  std::vector<int32_t> answer;
  std::vector<float> row = LastRow(model.Run(0, tokens, {512}), model.vocab_size());
  const auto& eos = model.model().config().eos_tokens;
  while (true) {
    answer.push_back(ArgMax(row));
    const bool ended = std::find(eos.begin(), eos.end(), answer.back()) != eos.end();
    if (ended || answer.size() == count) return answer;
    tokens.push_back(answer.back());
    row = model.Step({{0, static_cast<int64_t>(tokens.size()) - 1, std::span(tokens).last(1)}});
  }
}

class DemoModel : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!std::filesystem::exists(kGolden)) GTEST_SKIP() << "there is no " << kGolden;
    std::ifstream file(kGolden);
    cases_ = nlohmann::json::parse(file).at("cases");
  }

  nlohmann::json cases_;
};

TEST_F(DemoModel, LogitsOfReferencePrecision) {
  const auto model = Load(Precision::kReference);
  for (const nlohmann::json& c : cases_) {
    SCOPED_TRACE(c.at("user").get<std::string>());
    const auto tokens = c.at("tokens").get<std::vector<int32_t>>();
    const std::vector<float> row = LastRow(model->Run(0, tokens, {512}), model->vocab_size());
    EXPECT_EQ(ArgMax(row), c.at("argmax").get<int32_t>());
    const auto& expected = c.at("logits");
    for (size_t i = 0; i < expected.size(); ++i) {
      EXPECT_NEAR(row[i], expected[i].get<float>(), 2e-4F) << "token " << i;
    }
  }
}

TEST_F(DemoModel, GreedyTokensOfReferencePrecision) {
  const auto model = Load(Precision::kReference);
  for (const nlohmann::json& c : cases_) {
    const auto expected = c.at("greedy").get<std::vector<int32_t>>();
    EXPECT_EQ(Continue(*model, c.at("tokens"), expected.size()), expected) << c.at("user");
  }
}

TEST_F(DemoModel, NativePrecisionSaysTheSame) {
  const auto model = Load(Precision::kNative);
  for (const nlohmann::json& c : cases_) {
    const auto expected = c.at("greedy").get<std::vector<int32_t>>();
    EXPECT_EQ(Continue(*model, c.at("tokens"), expected.size()), expected) << c.at("user");
  }
}

}  // namespace
}  // namespace fulgur::model

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>

#include "model/testing/test_model.h"
#include "model/testing/tiny_model.h"

namespace fulgur::model {
namespace {

using testing::MakeWeights;
using testing::StandardTokens;
using testing::Storage;
using testing::TestModel;
using testing::TinyConfig;

constexpr int64_t kPromptLength = 300;
constexpr float kTolerance = 2e-5F;

TestModel ReferenceModel() {
  return {TinyConfig(), MakeWeights(TinyConfig(), Storage::kF32, true), {}};
}

std::vector<int32_t> Prompt() { return StandardTokens(TinyConfig(), kPromptLength); }

// Logits of an independent fp64 program at some positions: see testdata/README.md.
nlohmann::json Golden() {
  std::ifstream file("src/model/testdata/golden_tiny.json");
  return nlohmann::json::parse(file).at("A");
}

void ExpectGoldenRow(const float* logits, int64_t position, const nlohmann::json& expected) {
  const int64_t vocabulary = TinyConfig().vocab_size;
  const auto best = std::max_element(logits, logits + vocabulary);
  EXPECT_EQ(best - logits, expected.at("argmax").get<int64_t>()) << "position " << position;
  EXPECT_NEAR(*best, expected.at("top").get<float>(), kTolerance) << "position " << position;
  for (size_t i = 0; i < expected.at("first").size(); ++i) {
    EXPECT_NEAR(logits[i], expected.at("first")[i].get<float>(), kTolerance)
        << "position " << position << ", token " << i;
  }
  double squares = 0;
  for (int64_t i = 0; i < vocabulary; ++i) squares += static_cast<double>(logits[i]) * logits[i];
  EXPECT_NEAR(std::sqrt(squares), expected.at("l2").get<double>(), 1e-4);
}

void ExpectGolden(const std::vector<float>& logits) {
  const nlohmann::json golden = Golden();
  for (const auto& [position, expected] : golden.items()) {
    const int64_t p = std::stoll(position);
    ExpectGoldenRow(logits.data() + p * TinyConfig().vocab_size, p, expected);
  }
}

TEST(Decoder, OneShotPrefillGivesGoldenLogits) {
  TestModel model = ReferenceModel();
  ExpectGolden(model.Run(0, Prompt(), {kPromptLength}));
}

}  // namespace
}  // namespace fulgur::model

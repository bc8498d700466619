// Positions far beyond any prompt that a test could run: places in memory, angles and the choice
// among a quarter of a million entries.
#include <gtest/gtest.h>

#include <cmath>
#include <memory>

#include "base/machine.h"
#include "model/testing/test_model.h"
#include "model/testing/tiny_model.h"

namespace fulgur::model {
namespace {

using testing::TestModel;
using testing::TestModelOptions;
using testing::TinyConfig;

constexpr int64_t kFar = 1000000;
constexpr int64_t kHistory = 20;
constexpr int64_t kRows = 6;

// A model with one sequence of which only the last rows before kFar hold anything.
std::unique_ptr<TestModel> FarModel(kernels::OpChoice ops, int num_workers) {
  TestModelOptions options;
  options.precision = Precision::kNative;
  options.ops = ops;
  options.num_workers = num_workers;
  options.max_position = 1 << 20;
  options.max_sequences = 1;
  ModelConfig config = TinyConfig();
  config.index_heads = 2;  // a quarter of a million keys for each row
  auto model = std::make_unique<TestModel>(
      config, MakeWeights(config, testing::Storage::kInt8, false), options);
  const std::vector<int32_t> history = testing::StandardTokens(config, kHistory);
  model->Step({{0, kFar - kHistory, history}});
  return model;
}

class LongContext : public ::testing::TestWithParam<kernels::OpChoice> {};

TEST_P(LongContext, AMillionPositionsInWhateverSteps) {
  if (!kernels::Supports(base::DetectMachine(), GetParam())) GTEST_SKIP();
  const std::vector<int32_t> tokens = testing::StandardTokens(TinyConfig(), kRows);
  std::vector<float> one_by_one;
  const auto first = FarModel(GetParam(), 1);
  for (int64_t i = 0; i < kRows; ++i) {
    const auto token = std::span(tokens).subspan(static_cast<size_t>(i), 1);
    const std::vector<float> row = first->Step({{0, kFar + i, token}});
    one_by_one.insert(one_by_one.end(), row.begin(), row.end());
  }
  const auto second = FarModel(GetParam(), 2);
  EXPECT_EQ(second->Step({{0, kFar, tokens}}), one_by_one);
  for (const float logit : one_by_one) ASSERT_TRUE(std::isfinite(logit));
}

INSTANTIATE_TEST_SUITE_P(Tables, LongContext,
                         ::testing::Values(kernels::OpChoice::kScalar, kernels::OpChoice::kAvx512),
                         [](const auto& info) {
                           return info.param == kernels::OpChoice::kScalar ? "Scalar" : "Avx512";
                         });

}  // namespace
}  // namespace fulgur::model

// How many barriers a layer takes: a step of few rows one for each product that needs all of the
// one before (layer_step.h).
#include <gtest/gtest.h>

#include "base/machine.h"
#include "model/testing/test_model.h"
#include "model/testing/tiny_model.h"

namespace fulgur::model {
namespace {

// Barriers of a step behind `first_position` tokens, in a model with `ratios` and without drafter.
// Two models of different depth show what the layers take.
int64_t Barriers(const std::vector<int64_t>& ratios, testing::Storage storage,
                 int64_t first_position, size_t num_rows) {
  ModelConfig config = testing::TinyConfig();
  config.num_layers = static_cast<int64_t>(ratios.size());
  config.compress_ratios = ratios;
  testing::TestModelOptions options;
  options.precision = Precision::kNative;
  options.ops = kernels::OpChoice::kAuto;
  options.num_workers = 2;
  testing::TestModel model(config, testing::MakeWeights(config, storage, false), options);
  const std::vector<int32_t> tokens =
      testing::StandardTokens(config, first_position + static_cast<int64_t>(num_rows));
  const auto split = tokens.begin() + first_position;
  model.Run(0, std::vector<int32_t>(tokens.begin(), split), {512});
  const std::vector<int32_t> rows(split, tokens.end());
  const uint32_t before = model.team().barriers();
  model.Step({{0, first_position, rows}});
  return model.team().barriers() - before;
}

int64_t BarriersOfLayer(int64_t ratio, testing::Storage storage, int64_t first_position,
                        size_t num_rows) {
  return Barriers({0, ratio}, storage, first_position, num_rows) -
         Barriers({0}, storage, first_position, num_rows);
}

constexpr int64_t kEarly = 20;  // all compressed entries are seen
constexpr int64_t kLate = 400;  // the index chooses

TEST(StepRegions, ADecodedTokenTakesEightRegionsALayer) {
  for (const testing::Storage storage :
       {testing::Storage::kFp8Fp4, testing::Storage::kBf16, testing::Storage::kInt8}) {
    EXPECT_EQ(BarriersOfLayer(0, storage, kLate, 1), 8);
    EXPECT_EQ(BarriersOfLayer(128, storage, kLate, 1), 8);
    EXPECT_EQ(BarriersOfLayer(4, storage, kEarly, 1), 8);
  }
}

// Every key has to be scored before attention can choose.
TEST(StepRegions, AnIndexThatChoosesTakesOneMore) {
  EXPECT_EQ(BarriersOfLayer(4, testing::Storage::kFp8Fp4, kLate, 1), 9);
}

// Stages of whole rows are shared, with a barrier before and after.
TEST(StepRegions, ManyRowsAreSharedAmongTheWorkers) {
  EXPECT_LE(BarriersOfLayer(4, testing::Storage::kFp8Fp4, kLate, 100), 15);
}

}  // namespace
}  // namespace fulgur::model

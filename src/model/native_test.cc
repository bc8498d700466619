// Native precision stays near reference precision of the same stored weights.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "base/machine.h"
#include "model/testing/test_model.h"
#include "model/testing/tiny_model.h"

namespace fulgur::model {
namespace {

using testing::MakeWeights;
using testing::Storage;
using testing::TestModel;
using testing::TestModelOptions;
using testing::TinyConfig;

constexpr int64_t kLength = 200;

struct Case {
  std::string name;
  Storage storage;
  kernels::OpChoice ops;
};

// Cosine similarities of logits. Random weights round far worse than trained ones, and where the
// router or the indexer chooses between near ties, rounding may choose another one.
constexpr double kMedian = 0.998;
constexpr double kTenth = 0.92;

double Cosine(const float* a, const float* b, int64_t n) {
  double ab = 0;
  double aa = 0;
  double bb = 0;
  for (int64_t i = 0; i < n; ++i) {
    ab += static_cast<double>(a[i]) * b[i];
    aa += static_cast<double>(a[i]) * a[i];
    bb += static_cast<double>(b[i]) * b[i];
  }
  return ab / std::sqrt(aa * bb);
}

std::vector<float> Logits(Storage storage, Precision precision, kernels::OpChoice ops) {
  TestModelOptions options;
  options.precision = precision;
  options.ops = ops;
  const bool reference = precision == Precision::kReference;
  TestModel model(TinyConfig(), MakeWeights(TinyConfig(), storage, reference), options);
  return model.Run(0, testing::StandardTokens(TinyConfig(), kLength), {kLength});
}

class Native : public ::testing::TestWithParam<Case> {};

TEST_P(Native, StaysNearReference) {
  const Case& c = GetParam();
  if (!kernels::Supports(base::DetectMachine(), c.ops)) GTEST_SKIP();
  const std::vector<float> native = Logits(c.storage, Precision::kNative, c.ops);
  const std::vector<float> reference =
      Logits(c.storage, Precision::kReference, kernels::OpChoice::kScalar);
  const int64_t vocabulary = TinyConfig().vocab_size;
  std::vector<double> cosines;
  for (int64_t t = 0; t < kLength; ++t) {
    cosines.push_back(
        Cosine(native.data() + t * vocabulary, reference.data() + t * vocabulary, vocabulary));
  }
  std::sort(cosines.begin(), cosines.end());
  RecordProperty("median", std::to_string(cosines[kLength / 2]));
  EXPECT_GE(cosines[kLength / 2], kMedian);
  EXPECT_GE(cosines[kLength / 10], kTenth) << "a tenth of all positions lies below";
}

std::vector<Case> Cases() {
  std::vector<Case> cases;
  for (const auto& [ops, table] : {std::pair(kernels::OpChoice::kScalar, "Scalar"),
                                   std::pair(kernels::OpChoice::kAvx512, "Avx512")}) {
    const std::string prefix = table;
    cases.push_back({prefix + "F32", Storage::kF32, ops});
    cases.push_back({prefix + "Bf16", Storage::kBf16, ops});
    cases.push_back({prefix + "Fp8Fp4", Storage::kFp8Fp4, ops});
    cases.push_back({prefix + "Int8", Storage::kInt8, ops});
    cases.push_back({prefix + "Int4", Storage::kInt4, ops});
  }
  return cases;
}

INSTANTIATE_TEST_SUITE_P(Formats, Native, ::testing::ValuesIn(Cases()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace fulgur::model

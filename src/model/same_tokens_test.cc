// Logits are bit for bit the same alone and in any batch, for any chunking of the prompt and any
// number of workers, in native precision, for every kernel table that this machine runs.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
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

constexpr int32_t kSequences = 4;

struct Case {
  std::string name;
  Storage storage;
  kernels::OpChoice ops;
};

class SameTokens : public ::testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
    if (!kernels::Supports(base::DetectMachine(), GetParam().ops)) {
      GTEST_SKIP() << "this machine lacks the instructions";
    }
  }

  static TestModel MakeModel(int num_workers) {
    TestModelOptions options;
    options.precision = Precision::kNative;
    options.ops = GetParam().ops;
    options.num_workers = num_workers;
    return {TinyConfig(), MakeWeights(TinyConfig(), GetParam().storage, false), options};
  }
};

std::vector<std::vector<int32_t>> RandomPrompts(std::mt19937& random) {
  std::vector<std::vector<int32_t>> prompts(kSequences);
  for (std::vector<int32_t>& prompt : prompts) {
    prompt.resize(std::uniform_int_distribution<size_t>(1, 290)(random));
    for (int32_t& token : prompt) token = std::uniform_int_distribution<int32_t>(0, 511)(random);
  }
  return prompts;
}

// Runs all prompts to their ends in steps of random sequences with random numbers of rows.
std::vector<std::vector<float>> RunMixed(TestModel& model,
                                         const std::vector<std::vector<int32_t>>& prompts,
                                         std::mt19937& random) {
  std::vector<std::vector<float>> logits(kSequences);
  std::vector<size_t> done(kSequences, 0);
  std::vector<int32_t> open = {0, 1, 2, 3};
  while (!open.empty()) {
    std::shuffle(open.begin(), open.end(), random);
    const size_t count = std::uniform_int_distribution<size_t>(1, open.size())(random);
    std::vector<TestModel::Rows> parts;
    for (size_t i = 0; i < count; ++i) {
      const auto s = static_cast<size_t>(open[i]);
      const bool decode = std::bernoulli_distribution(0.3)(random);
      const size_t wanted = decode ? 1 : std::uniform_int_distribution<size_t>(1, 120)(random);
      const size_t rows = std::min(wanted, prompts[s].size() - done[s]);
      parts.push_back(
          {open[i], static_cast<int64_t>(done[s]), std::span(prompts[s]).subspan(done[s], rows)});
    }
    const std::vector<float> step = model.Step(parts);
    auto next = step.begin();
    for (const TestModel::Rows& part : parts) {
      const auto s = static_cast<size_t>(part.sequence);
      const auto end = next + static_cast<int64_t>(part.tokens.size()) * model.vocab_size();
      logits[s].insert(logits[s].end(), next, end);
      next = end;
      done[s] += part.tokens.size();
    }
    std::erase_if(open, [&](int32_t s) {
      return done[static_cast<size_t>(s)] == prompts[static_cast<size_t>(s)].size();
    });
  }
  return logits;
}

TEST_P(SameTokens, AloneInBatchesInChunksAndWithMoreWorkers) {
  const unsigned seed = std::random_device()();
  RecordProperty("seed", std::to_string(seed));
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  const std::vector<std::vector<int32_t>> prompts = RandomPrompts(random);
  TestModel one = MakeModel(1);
  std::vector<std::vector<float>> alone;
  for (int32_t s = 0; s < kSequences; ++s) {
    alone.push_back(one.Run(s, prompts[static_cast<size_t>(s)], {512}));
  }
  TestModel two = MakeModel(2);
  const std::vector<std::vector<float>> mixed = RunMixed(one, prompts, random);
  const std::vector<std::vector<float>> shared = RunMixed(two, prompts, random);
  for (size_t s = 0; s < kSequences; ++s) {
    EXPECT_EQ(alone[s], mixed[s]) << "sequence " << s << " of " << prompts[s].size() << " tokens";
    EXPECT_EQ(alone[s], shared[s]) << "two workers, sequence " << s;
  }
}

std::vector<Case> Cases() {
  std::vector<Case> cases;
  for (const auto& [ops, table] : {std::pair(kernels::OpChoice::kScalar, "Scalar"),
                                   std::pair(kernels::OpChoice::kAvx512, "Avx512")}) {
    for (const auto& [storage, name] :
         {std::pair(Storage::kF32, "F32"), std::pair(Storage::kBf16, "Bf16"),
          std::pair(Storage::kFp8Fp4, "Fp8Fp4"), std::pair(Storage::kInt8, "Int8"),
          std::pair(Storage::kInt4, "Int4")}) {
      cases.push_back({std::string(table) + name, storage, ops});
    }
  }
  return cases;
}

INSTANTIATE_TEST_SUITE_P(Native, SameTokens, ::testing::ValuesIn(Cases()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace fulgur::model

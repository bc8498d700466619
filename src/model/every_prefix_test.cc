// Decoding after every prefix, and every split of the prompt in two, equal one-shot prefill.
#include <gtest/gtest.h>

#include <algorithm>

#include "model/testing/test_model.h"
#include "model/testing/tiny_model.h"

namespace fulgur::model {
namespace {

constexpr int64_t kLength = 300;

class EveryPrefix : public ::testing::Test {
 protected:
  EveryPrefix()
      : model_(testing::TinyConfig(),
               testing::MakeWeights(testing::TinyConfig(), testing::Storage::kF32, true), {}),
        prompt_(testing::StandardTokens(testing::TinyConfig(), kLength)),
        whole_(model_.Run(0, prompt_, {kLength})) {}

  // The logits of `count` rows of the whole prompt.
  std::vector<float> Whole(int64_t first, int64_t count) const {
    const auto begin = whole_.begin() + first * testing::TinyConfig().vocab_size;
    return {begin, begin + count * testing::TinyConfig().vocab_size};
  }

  std::vector<float> StepFrom(int64_t first, int64_t count) {
    const auto tokens = std::span<const int32_t>(prompt_).subspan(static_cast<size_t>(first),
                                                                  static_cast<size_t>(count));
    return model_.Step({{1, first, tokens}});
  }

  testing::TestModel model_;
  std::vector<int32_t> prompt_;
  std::vector<float> whole_;
};

TEST_F(EveryPrefix, ThenOneTokenOrTheRest) {
  for (int64_t prefix = 1; prefix < kLength; ++prefix) {
    SCOPED_TRACE(prefix);
    ASSERT_EQ(StepFrom(0, prefix), Whole(0, prefix));
    ASSERT_EQ(StepFrom(prefix, 1), Whole(prefix, 1));
    // The same position once more, as part of the rest: it only overwrites itself.
    ASSERT_EQ(StepFrom(prefix, kLength - prefix), Whole(prefix, kLength - prefix));
  }
}

TEST_F(EveryPrefix, TokenByToken) {
  for (int64_t position = 0; position < kLength; ++position) {
    ASSERT_EQ(StepFrom(position, 1), Whole(position, 1)) << position;
  }
}

}  // namespace
}  // namespace fulgur::model

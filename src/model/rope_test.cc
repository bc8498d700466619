#include "model/rope.h"

#include <gtest/gtest.h>

namespace fulgur::model {
namespace {

ModelConfig FlashRope() {
  ModelConfig config;
  config.rope_dim = 64;
  config.rope_theta = 10000;
  config.compress_rope_theta = 160000;
  config.rope_scaling = {
      .factor = 16, .original_max_position = 65536, .beta_fast = 32, .beta_slow = 1};
  return config;
}

TEST(Rope, FrequenciesOfDeepSeekV4) {
  const std::vector<float> plain = RopeFrequencies(FlashRope(), false);
  const std::vector<float> scaled = RopeFrequencies(FlashRope(), true);
  const std::vector<std::tuple<size_t, float, float>> expected = {
      {0, 1.0F, 1.0F},
      {1, 7.498942093e-1F, 6.876560219e-1F},
      {14, 1.778279410e-2F, 5.286856317e-3F},
      {15, 1.333521432e-2F, 3.635538584e-3F},
      {16, 1.0e-2F, 2.265625000e-3F},
      {20, 3.162277660e-3F, 2.969777783e-4F},
      {24, 1.0e-3F, 1.953125000e-5F},
      {25, 7.498942093e-4F, 5.372312671e-6F},
      {31, 1.333521432e-4F, 5.680529037e-7F}};
  for (const auto& [i, r0, r4] : expected) {
    EXPECT_NEAR(plain[i] / r0, 1.0F, 2.5e-7F) << i;
    EXPECT_NEAR(scaled[i] / r4, 1.0F, 2.5e-7F) << i;
  }
}

// Pair (u, v) rotated by the table of a position.
std::pair<float, float> Rotate(bool compressed, int64_t position, size_t pair, float u, float v) {
  const std::vector<float> frequencies = RopeFrequencies(FlashRope(), compressed);
  std::vector<float> rotation(2 * frequencies.size());
  WriteRotation(position, frequencies, rotation.data());
  const float c = rotation[2 * pair];
  const float s = rotation[2 * pair + 1];
  return {u * c - v * s, u * s + v * c};
}

TEST(Rope, RotationAtPosition5000) {
  const auto [a, b] = Rotate(true, 5000, 0, 1, 2);
  EXPECT_NEAR(a, 2.13060128, 1e-6);
  EXPECT_NEAR(b, -0.67862963, 1e-6);
  const auto [c, d] = Rotate(true, 5000, 20, 1, -1);
  EXPECT_NEAR(c, 1.08211401, 1e-7);
  EXPECT_NEAR(d, 0.91051044, 1e-7);
  const auto [e, f] = Rotate(false, 5000, 20, 1, -1);
  EXPECT_NEAR(e, -1.09789774, 2e-7);
  EXPECT_NEAR(f, 0.89141492, 2e-7);
}

}  // namespace
}  // namespace fulgur::model

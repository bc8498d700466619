#include "sample/noise.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace fulgur::sample {
namespace {

// Known answers published with the Random123 library.
TEST(Philox, KnownAnswers) {
  EXPECT_EQ(Philox({0, 0, 0, 0}, {0, 0}),
            (std::array<uint32_t, 4>{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(Philox({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, {0xffffffff, 0xffffffff}),
            (std::array<uint32_t, 4>{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(Philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (std::array<uint32_t, 4>{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(PositionNoise, BoundHoldsAndExtremesAreFinite) {
  for (const uint32_t bits : {0U, 1U, 2U, 3U, 255U, 256U, 0x7FFFFFFFU, 0x80000000U, 0xFFFFFFFFU}) {
    const double gumbel = PositionNoise::GumbelFromBits(bits);
    EXPECT_TRUE(std::isfinite(gumbel)) << bits;
    EXPECT_LE(gumbel, PositionNoise::GumbelBound(bits) + 1e-9) << bits;
    EXPECT_LE(gumbel, kMaxGumbel) << bits;
  }
  for (int32_t token = 0; token < 100000; ++token) {
    const uint32_t bits = PositionNoise(7, 3).Block(static_cast<uint32_t>(token))[0];
    EXPECT_LE(PositionNoise::GumbelFromBits(bits), PositionNoise::GumbelBound(bits));
  }
}

TEST(PositionNoise, HasTheMomentsOfAGumbelDistribution) {
  double sum = 0.0;
  double squares = 0.0;
  constexpr int kCount = 400000;
  for (int i = 0; i < kCount; ++i) {
    const double value = PositionNoise(42, i / 1000).Gumbel(i % 1000);
    sum += value;
    squares += value * value;
  }
  const double mean = sum / kCount;
  EXPECT_NEAR(mean, 0.5772157, 0.01);                            // Euler's constant
  EXPECT_NEAR(squares / kCount - mean * mean, 1.6449341, 0.02);  // pi^2 / 6
}

TEST(PositionNoise, DependsOnSeedPositionAndTokenOnly) {
  const double value = PositionNoise(1, 2).Gumbel(3);
  EXPECT_EQ(value, PositionNoise(1, 2).Gumbel(3));
  EXPECT_NE(value, PositionNoise(2, 2).Gumbel(3));
  EXPECT_NE(value, PositionNoise(1ULL << 32 | 1, 2).Gumbel(3));
  EXPECT_NE(value, PositionNoise(1, 3).Gumbel(3));
  EXPECT_NE(value, PositionNoise(1, (1LL << 32) + 2).Gumbel(3));
  EXPECT_NE(value, PositionNoise(1, 2).Gumbel(4));
}

}  // namespace
}  // namespace fulgur::sample

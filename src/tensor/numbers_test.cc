#include "tensor/numbers.h"

#include <cmath>

#include "gtest/gtest.h"

namespace fulgur::tensor {
namespace {

TEST(NumbersTest, E4M3RoundsToNearestEven) {
  const float pairs[][2] = {{0.3F, 0.3125F},    {0.9F, 0.875F},   {1.0625F, 1.0F},
                            {1.09375F, 1.125F}, {17.5F, 18.0F},   {100.0F, 96.0F},
                            {239.0F, 240.0F},   {247.0F, 240.0F}, {248.0F, 256.0F},
                            {431.0F, 416.0F},   {432.0F, 448.0F}, {0.001F, 0.001953125F},
                            {1000.0F, 448.0F}};
  for (const auto& [value, expected] : pairs) {
    EXPECT_EQ(RoundToE4M3(value), expected) << value;
    EXPECT_EQ(RoundToE4M3(-value), -expected) << value;
  }
}

TEST(NumbersTest, EveryE4M3CodeRoundTrips) {
  for (int code = 0; code < 256; ++code) {
    const float value = E4M3ToFloat(static_cast<uint8_t>(code));
    if (std::isnan(value)) continue;
    EXPECT_EQ(RoundToE4M3(value), value) << code;
  }
}

TEST(NumbersTest, PowerOfTwoScales) {
  EXPECT_EQ(CeilToPowerOfTwo(1.0F / 448), std::ldexp(1.0F, -8));
  EXPECT_EQ(CeilToPowerOfTwo(3.5F / 448), std::ldexp(1.0F, -7));
  EXPECT_EQ(CeilToPowerOfTwo(1.0F), 1.0F);
  EXPECT_EQ(CeilToPowerOfTwo(449.0F / 448), 2.0F);
  EXPECT_EQ(E8M0ToFloat(127), 1.0F);
  EXPECT_EQ(E8M0ToFloat(0), std::ldexp(1.0F, -127));
}

TEST(NumbersTest, Fp4CodesAreHalfIntegers) {
  EXPECT_EQ(E2M1ToFloat(0x1), 0.5F);
  EXPECT_EQ(E2M1ToFloat(0x2), 1.0F);
  EXPECT_EQ(E2M1ToFloat(0x7), 6.0F);
  EXPECT_EQ(E2M1ToFloat(0xF), -6.0F);
}

TEST(NumbersTest, Bfloat16RoundsToNearestEven) {
  EXPECT_EQ(RoundToBFloat16(1.0F + 1.0F / 256), 1.0F);
  EXPECT_EQ(RoundToBFloat16(1.0F + 3.0F / 256), 1.0F + 4.0F / 256);
  EXPECT_TRUE(std::isnan(RoundToBFloat16(std::nanf(""))));
}

TEST(NumbersTest, HalfConvertsSubnormalsAndInfinity) {
  EXPECT_EQ(HalfToFloat(0x3c00), 1.0F);
  EXPECT_EQ(HalfToFloat(0x0001), std::ldexp(1.0F, -24));
  EXPECT_EQ(HalfToFloat(0xc000), -2.0F);
  EXPECT_TRUE(std::isinf(HalfToFloat(0x7c00)));
}

}  // namespace
}  // namespace fulgur::tensor

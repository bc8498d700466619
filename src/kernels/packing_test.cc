#include "kernels/packing.h"

#include <cmath>
#include <random>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/quantize.h"
#include "kernels/random_weights.h"
#include "kernels/scalar/scalar_ops.h"

namespace fulgur::kernels {
namespace {

const base::WorkerRank kAlone(0, 1, nullptr);

struct Shape {
  int64_t out, in, rows;
};

double Activation(const RandomRows& x, ActivationFormat format, int64_t t, int64_t i) {
  const auto at = static_cast<size_t>(t * x.view.cols + i);
  switch (format) {
    case ActivationFormat::kF32:
      return x.f32[at];
    case ActivationFormat::kBf16:
      return tensor::ToFloat(x.bf16[at]);
    case ActivationFormat::kInt8:
      return static_cast<double>(x.int8[at]) * x.scale[static_cast<size_t>(t)];
  }
  return 0.0;
}

// y of the packed weight against plain dot products with dequantised rows.
void ExpectProductsMatch(const RandomWeight& w, const PackedLinear& packed, const RandomRows& x) {
  std::vector<float> y(static_cast<size_t>(x.view.rows * packed.out), NAN);
  const LinearJob job{.weight = &packed, .x = x.view, .y = y.data()};
  scalar::Linear({&job, 1}, kAlone);
  std::vector<float> row(static_cast<size_t>(packed.in));
  for (int64_t o = 0; o < packed.out; ++o) {
    DequantizeRow(w.source, o, row.data());
    for (int64_t t = 0; t < x.view.rows; ++t) {
      double sum = 0.0, magnitude = 0.0;
      for (int64_t i = 0; i < packed.in; ++i) {
        const double term =
            row[static_cast<size_t>(i)] * Activation(x, ActivationOf(packed.format), t, i);
        sum += term;
        magnitude += std::fabs(term);
      }
      // bf16 targets round weights that were fp32 before.
      const double tolerance = packed.format == WeightFormat::kBf16 ? 4e-3 : 1e-6;
      ASSERT_NEAR(y[static_cast<size_t>(t * packed.out + o)], sum, tolerance * magnitude + 1e-30)
          << "channel " << o << ", row " << t;
    }
  }
}

class PackingTest : public testing::TestWithParam<WeightFormat> {};

TEST_P(PackingTest, ProductsEqualThoseOfDequantisedRows) {
  const bool fp4 = GetParam() == WeightFormat::kFp4;
  for (const Shape& shape : {Shape{64, 128, 1}, Shape{32, 64, 3}, Shape{200, 416, 17},
                             Shape{6, fp4 ? 96 : 37, 2}, Shape{130, fp4 ? 160 : 131, 5}}) {
    const RandomWeight w = MakeRandomWeight(GetParam(), shape.out, shape.in, 7);
    ExpectProductsMatch(w, w.packed, MakeRandomRows(shape.rows, shape.in, 9));
  }
}

TEST_P(PackingTest, EverySourcePacksToFp32ForReferencePrecision) {
  const RandomWeight w = MakeRandomWeight(GetParam(), 70, 96, 3);
  tensor::Buffer<std::byte> bytes(PackedBytes(w.source, WeightFormat::kF32));
  Pack(w.source, WeightFormat::kF32, bytes.span(), kAlone);
  ExpectProductsMatch(w, {WeightFormat::kF32, 70, 96, bytes.span()}, MakeRandomRows(4, 96, 5));
}

TEST_P(PackingTest, WorkersPackTheSameBytesAsOneAlone) {
  const RandomWeight w = MakeRandomWeight(GetParam(), 330, 192, 11);
  tensor::Buffer<std::byte> bytes(w.packed_bytes.size());
  for (int rank = 0; rank < 3; ++rank) {
    Pack(w.source, GetParam(), bytes.span(), base::WorkerRank(rank, 3, nullptr));
  }
  EXPECT_TRUE(std::equal(bytes.data(), bytes.data() + bytes.size(), w.packed_bytes.data()));
}

INSTANTIATE_TEST_SUITE_P(Formats, PackingTest,
                         testing::Values(WeightFormat::kF32, WeightFormat::kBf16,
                                         WeightFormat::kFp8Block, WeightFormat::kInt8,
                                         WeightFormat::kInt4, WeightFormat::kFp4));

TEST(PackingTest, HalfAndBfloatSourcesKeepTheirValues) {
  const uint16_t half[4] = {0x3c00, 0xc000, 0x0001, 0x7bff};  // 1, -2, 2^-24, 65504
  LinearSource source{.format = WeightFormat::kBf16, .out = 1, .in = 4};
  source.weight = reinterpret_cast<const std::byte*>(half);
  source.weight_type = tensor::DType::kF16;
  float values[4];
  DequantizeRow(source, 0, values);
  EXPECT_EQ(values[0], 1.0F);
  EXPECT_EQ(values[1], -2.0F);
  EXPECT_EQ(values[2], 0x1p-24F);
  EXPECT_EQ(values[3], 65504.0F);
}

// The byte examples of the MXFP4 layout and of W4A8_DYNAMIC.
TEST(PackingTest, NibblesComeInTheOrderOfTheirFormats) {
  std::vector<std::byte> codes(16, std::byte{0});
  codes[0] = std::byte{0x21};
  codes[1] = std::byte{0xf7};
  const std::byte scale{127};
  LinearSource fp4{.format = WeightFormat::kFp4, .out = 1, .in = 32, .weight = codes.data()};
  fp4.scale = &scale;
  fp4.scale_type = tensor::DType::kF8E8M0;
  float values[32];
  DequantizeRow(fp4, 0, values);
  EXPECT_EQ(std::vector<float>(values, values + 4), (std::vector<float>{0.5F, 1.0F, 6.0F, -6.0F}));

  const std::byte pair[2] = {std::byte{0xe1}, std::byte{0x78}};
  const float scales[2] = {1.0F, 1.0F};
  LinearSource int4{.format = WeightFormat::kInt4, .out = 2, .in = 2, .weight = pair};
  int4.scale = reinterpret_cast<const std::byte*>(scales);
  DequantizeRow(int4, 0, values);
  EXPECT_EQ(std::vector<float>(values, values + 2), (std::vector<float>{1.0F, -8.0F}));
  DequantizeRow(int4, 1, values);
  EXPECT_EQ(std::vector<float>(values, values + 2), (std::vector<float>{-2.0F, 7.0F}));
}

TEST(QuantizeTest, Int8RowsFollowTheModelslimRule) {
  const float x[3] = {0.9F, -2.0F, 0.5F};
  int8_t q[3];
  EXPECT_EQ(QuantizeInt8(x, 3, q), 2.0F / 127.0F);
  EXPECT_EQ(std::vector<int>(q, q + 3), (std::vector<int>{57, -127, 32}));
  const float zeros[2] = {0.0F, -0.0F};
  EXPECT_EQ(QuantizeInt8(zeros, 2, q), 0.0F);
  EXPECT_EQ(q[0], 0);
}

}  // namespace
}  // namespace fulgur::kernels

// Products of every table that this machine runs, against the scalar table: integer formats bit for
// bit, others up to rounding; and independent of the number of rows and of workers.
#include <cmath>
#include <cstring>
#include <functional>
#include <numeric>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/op_table.h"
#include "kernels/random_weights.h"

namespace fulgur::kernels {
namespace {

constexpr WeightFormat kFormats[] = {WeightFormat::kF32,      WeightFormat::kBf16,
                                     WeightFormat::kFp8Block, WeightFormat::kInt8,
                                     WeightFormat::kInt4,     WeightFormat::kFp4};

bool IsInteger(WeightFormat format) { return ActivationOf(format) == ActivationFormat::kInt8; }

const OpTable& Scalar() { return *SupportedOps(base::DetectMachine()).front(); }

// Every worker's share in turn; ops do not wait for each other.
void RunAll(int workers, const std::function<void(const base::WorkerRank&)>& op) {
  for (int rank = 0; rank < workers; ++rank) op(base::WorkerRank(rank, workers, nullptr));
}

std::vector<float> RunLinear(const OpTable& ops, const PackedLinear& weight,
                             const ActivationRows& x, int workers = 1) {
  std::vector<float> y(static_cast<size_t>(x.rows * weight.out), NAN);
  const LinearJob job{.weight = &weight, .x = x, .y = y.data()};
  RunAll(workers, [&](const auto& worker) { ops.linear({&job, 1}, worker); });
  return y;
}

void ExpectClose(const std::vector<float>& actual, const std::vector<float>& expected,
                 float tolerance) {
  float largest = 0.0F;
  for (float value : expected) largest = std::max(largest, std::fabs(value));
  for (size_t i = 0; i < expected.size(); ++i) {
    ASSERT_NEAR(actual[i], expected[i], tolerance * largest) << "element " << i;
  }
}

bool SameBits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

class ProductOpsTest : public testing::TestWithParam<const OpTable*> {};

struct Shape {
  int64_t out, in, rows;
};

TEST_P(ProductOpsTest, LinearEqualsScalarOverAGridOfShapes) {
  for (WeightFormat format : kFormats) {
    const bool fp4 = format == WeightFormat::kFp4;
    for (const Shape& shape :
         {Shape{64, 64, 1}, Shape{128, 256, 2}, Shape{96, 512, 3}, Shape{192, 192, 4},
          Shape{320, 128, 5}, Shape{64, 320, 6}, Shape{64, 1024, 7}, Shape{128, 96, 8},
          Shape{160, 224, 9}, Shape{256, 384, 13}, Shape{64, 160, 50}, Shape{130, 288, 100},
          Shape{200, fp4 ? 32 : 37, 3}, Shape{34, fp4 ? 96 : 131, 11}, Shape{2, 64, 4}}) {
      SCOPED_TRACE(testing::Message() << "format " << static_cast<int>(format) << ", [" << shape.out
                                      << ", " << shape.in << "], rows " << shape.rows);
      const RandomWeight w = MakeRandomWeight(format, shape.out, shape.in, 21);
      const RandomRows x = MakeRandomRows(shape.rows, shape.in, 22);
      const auto expected = RunLinear(Scalar(), w.packed, x.view);
      const auto actual = RunLinear(*GetParam(), w.packed, x.view);
      if (IsInteger(format)) {
        ASSERT_TRUE(SameBits(actual, expected));
      } else {
        ExpectClose(actual, expected, 2e-6F);
      }
    }
  }
}

// Alone, in any company: the same bits.
TEST_P(ProductOpsTest, ARowDoesNotDependOnTheOthers) {
  constexpr int64_t kIn = 416, kOut = 96, kRows = 101;
  for (WeightFormat format : kFormats) {
    const RandomWeight w = MakeRandomWeight(format, kOut, kIn, 5);
    const RandomRows x = MakeRandomRows(kRows, kIn, 6);
    const auto all = RunLinear(*GetParam(), w.packed, x.view);
    for (int64_t count : {1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 24, 50}) {
      const int64_t first = 101 - count - 3 * (count % 2);
      ActivationRows part = x.view;
      part.rows = count;
      part.f32 += first * kIn;
      part.bf16 += first * kIn;
      part.int8 += first * kIn;
      part.int8_scale += first;
      const auto some = RunLinear(*GetParam(), w.packed, part);
      ASSERT_EQ(std::memcmp(some.data(), all.data() + first * kOut, some.size() * 4), 0)
          << "format " << static_cast<int>(format) << ", " << count << " rows";
    }
  }
}

TEST_P(ProductOpsTest, JobsShareWorkersWithoutChangingResults) {
  const RandomRows x = MakeRandomRows(5, 256, 1);
  std::vector<RandomWeight> weights;
  for (WeightFormat format : kFormats) {
    weights.push_back(
        MakeRandomWeight(format, 64 * (1 + static_cast<int64_t>(format)) + 2, 256, 2));
  }
  for (int workers : {2, 3, 7}) {
    std::vector<std::vector<float>> results;
    std::vector<LinearJob> jobs;
    for (const RandomWeight& w : weights) {
      results.emplace_back(static_cast<size_t>(5 * w.packed.out), NAN);
      jobs.push_back({.weight = &w.packed, .x = x.view, .y = results.back().data()});
    }
    RunAll(workers, [&](const auto& worker) { GetParam()->linear(jobs, worker); });
    for (size_t i = 0; i < weights.size(); ++i) {
      ASSERT_TRUE(SameBits(results[i], RunLinear(*GetParam(), weights[i].packed, x.view)));
    }
  }
}

// Columns of a wider matrix as input and output: grouped output projections.
TEST_P(ProductOpsTest, StridesSelectColumns) {
  const RandomWeight w = MakeRandomWeight(WeightFormat::kBf16, 64, 128, 3);
  const RandomRows wide = MakeRandomRows(4, 256, 4);
  std::vector<float> y(4 * 100, 7.0F);
  LinearJob job{.weight = &w.packed, .x = wide.view, .x_stride = 256, .y = y.data() + 10};
  job.x.cols = 128;
  job.x.bf16 += 128;
  job.y_stride = 100;
  GetParam()->linear({&job, 1}, base::WorkerRank(0, 1, nullptr));
  RandomRows narrow = MakeRandomRows(4, 128, 4);
  for (size_t t = 0; t < 4; ++t) {
    std::copy_n(wide.bf16.begin() + static_cast<int64_t>(t) * 256 + 128, 128,
                narrow.bf16.begin() + static_cast<int64_t>(t) * 128);
  }
  const auto expected = RunLinear(*GetParam(), w.packed, narrow.view);
  for (size_t t = 0; t < 4; ++t) {
    ASSERT_EQ(std::memcmp(&y[t * 100 + 10], &expected[t * 64], 64 * 4), 0);
    EXPECT_EQ(y[t * 100 + 9], 7.0F);
    EXPECT_EQ(y[t * 100 + 74], 7.0F);
  }
}

// A small mixture: some experts with many rows, one with none, a shared one in another format.
struct Mixture {
  static constexpr int64_t kHidden = 224, kExpert = 96, kRows = 21;
  std::vector<RandomWeight> weights;
  std::vector<ExpertTask> tasks;
  std::vector<int32_t> slot_row;
  std::vector<float> slot_weight;
  RandomRows x = MakeRandomRows(kRows, kHidden, 31);
  RandomRows h_rows;
  std::vector<float> h;
  std::vector<float> out;
  ExpertArgs args;

  explicit Mixture(WeightFormat format) {
    weights.reserve(15);
    for (uint32_t e = 0; e < 5; ++e) {
      const WeightFormat f = e == 4 ? WeightFormat::kFp8Block : format;
      // Quantisation may differ from tensor to tensor.
      const WeightFormat up = e == 1 ? WeightFormat::kInt8 : e == 2 ? WeightFormat::kBf16 : f;
      weights.push_back(MakeRandomWeight(f, kExpert, kHidden, 10 * e));
      weights.push_back(MakeRandomWeight(up, kExpert, kHidden, 10 * e + 1));
      weights.push_back(MakeRandomWeight(f, kHidden, kExpert, 10 * e + 2));
    }
    for (uint32_t e = 0; e < 5; ++e) AddTask(e);
    const auto slots = static_cast<int64_t>(slot_row.size());
    h.assign(static_cast<size_t>(slots * kExpert), NAN);
    h_rows = MakeRandomRows(slots, kExpert, 33);
    out.assign(static_cast<size_t>(kRows * kHidden), NAN);
    args = {.tasks = tasks, .slot_row = slot_row.data(), .slot_weight = slot_weight.data()};
    args.x = x.view;
    args.swiglu_limit = 10.0F;
    args.expert_size = kExpert;
    args.h = h.data();
    args.h_rows = h_rows.view;
    args.out = out.data();
    args.rows = kRows;
  }

  void AddTask(uint32_t e) {
    const auto first = static_cast<int32_t>(slot_row.size());
    for (int32_t t = 0; t < kRows; ++t) {
      const bool taken =
          e == 4 || (e == 0 && t % 2 == 0) || (e == 1 && t == 5) || (e == 2 && t > 3);
      if (!taken) continue;
      slot_row.push_back(t);
      slot_weight.push_back(e == 4 ? 1.0F : 0.1F * static_cast<float>(1 + t % 7));
    }
    tasks.push_back({.gate = &weights[3 * e].packed,
                     .up = &weights[3 * e + 1].packed,
                     .down = &weights[3 * e + 2].packed,
                     .first_slot = first,
                     .num_slots = static_cast<int32_t>(slot_row.size()) - first});
  }
};

TEST_P(ProductOpsTest, ExpertsEqualScalarOnes) {
  for (WeightFormat format : {WeightFormat::kFp4, WeightFormat::kInt8, WeightFormat::kInt4,
                              WeightFormat::kBf16, WeightFormat::kFp8Block, WeightFormat::kF32}) {
    SCOPED_TRACE(static_cast<int>(format));
    Mixture expected(format);
    RunAll(1, [&](const auto& worker) { Scalar().expert_gate_up(expected.args, worker); });
    RunAll(1, [&](const auto& worker) { Scalar().expert_down(expected.args, worker); });
    Mixture first(format);
    RunAll(1, [&](const auto& worker) { GetParam()->expert_gate_up(first.args, worker); });
    RunAll(1, [&](const auto& worker) { GetParam()->expert_down(first.args, worker); });
    ExpectClose(first.h, expected.h, 4e-6F);
    ExpectClose(first.out, expected.out, 4e-6F);
    for (int workers : {2, 5}) {
      Mixture split(format);
      RunAll(workers, [&](const auto& worker) { GetParam()->expert_gate_up(split.args, worker); });
      RunAll(workers, [&](const auto& worker) { GetParam()->expert_down(split.args, worker); });
      EXPECT_TRUE(SameBits(split.h, first.h));
      EXPECT_TRUE(SameBits(split.out, first.out));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Tables, ProductOpsTest,
                         testing::ValuesIn(SupportedOps(base::DetectMachine())),
                         [](const auto& info) {
                           std::string name(info.param->name);
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

}  // namespace
}  // namespace fulgur::kernels

#include "model/weight_loader.h"

#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/packed_layout.h"
#include "model/testing/checkpoints.h"

namespace fulgur::model {
namespace {

using kernels::PackedLinear;
using kernels::WeightFormat;
using testing::CheckpointPath;

// fp32 values by tensor name, as the checkpoint's writer computed them.
class ExpectedValues {
 public:
  explicit ExpectedValues(const std::string& name)
      : file_(io::SafetensorsFile::Open(CheckpointPath(name, ".values.safetensors"))) {
    if (!file_.ok()) return;
    for (const io::TensorView& view : file_->tensors()) views_[view.name] = view;
  }

  const absl::Status& status() const { return file_.status(); }

  std::vector<float> Of(const std::string& name) const {
    const auto entry = views_.find(name);
    if (entry == views_.end()) return {};
    std::vector<float> values(entry->second.bytes.size() / sizeof(float));
    std::memcpy(values.data(), entry->second.bytes.data(), entry->second.bytes.size());
    return values;
  }

 private:
  absl::StatusOr<io::SafetensorsFile> file_;
  std::map<std::string, io::TensorView> views_;
};

// Rows of a linear that was packed as fp32: panels of 32 channels, input by input.
void AppendUnpacked(const PackedLinear& linear, std::vector<float>& values) {
  const auto* packed = reinterpret_cast<const float*>(linear.bytes.data());
  constexpr int64_t kChannels = kernels::PanelChannels(WeightFormat::kF32);
  for (int64_t o = 0; o < linear.out; ++o) {
    const float* panel =
        packed + o / kChannels * kernels::PanelBytes(WeightFormat::kF32, linear.in) / 4;
    for (int64_t i = 0; i < linear.in; ++i) values.push_back(panel[i * kChannels + o % kChannels]);
  }
}

template <typename T>
std::vector<float> AsFloats(std::span<const T> values) {
  std::vector<float> floats;
  for (const T value : values) floats.push_back(static_cast<float>(value));
  return floats;
}

// What a slot's destination holds after loading in reference precision.
std::vector<float> Loaded(const TensorSlot& slot) {
  std::vector<float> values;
  if (const auto* linear = std::get_if<PackedLinear*>(&slot.to)) {
    AppendUnpacked(**linear, values);
  } else if (const auto* groups = std::get_if<std::vector<PackedLinear>*>(&slot.to)) {
    for (const PackedLinear& group : **groups) AppendUnpacked(group, values);
  } else if (const auto* vector = std::get_if<std::span<const float>*>(&slot.to)) {
    values = AsFloats(**vector);
  } else if (const auto* table = std::get_if<std::span<const int32_t>*>(&slot.to)) {
    values = AsFloats(**table);
  } else {
    values = AsFloats(std::get<Embedding*>(slot.to)->f32);
  }
  return values;
}

bool SameBits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin());
}

template <typename T>
void Append(std::span<const T> values, std::vector<std::byte>& bytes) {
  const auto raw = std::as_bytes(values);
  bytes.insert(bytes.end(), raw.begin(), raw.end());
}

// The bytes of all destinations, one after the other.
std::vector<std::byte> AllBytes(const ModelConfig& config, Weights& weights) {
  std::vector<std::byte> bytes;
  for (const TensorSlot& slot : MainTensors(config, weights)) {
    if (const auto* linear = std::get_if<PackedLinear*>(&slot.to)) {
      Append((*linear)->bytes, bytes);
    } else if (const auto* groups = std::get_if<std::vector<PackedLinear>*>(&slot.to)) {
      for (const PackedLinear& group : **groups) Append(group.bytes, bytes);
    } else if (const auto* vector = std::get_if<std::span<const float>*>(&slot.to)) {
      Append(**vector, bytes);
    } else if (const auto* table = std::get_if<std::span<const int32_t>*>(&slot.to)) {
      Append(**table, bytes);
    } else {
      Append(std::get<Embedding*>(slot.to)->bf16, bytes);
      Append(std::get<Embedding*>(slot.to)->f32, bytes);
    }
  }
  return bytes;
}

LoadOptions Options(Precision precision, int num_threads,
                    LoadStrategy strategy = LoadStrategy::kLazy) {
  LoadOptions options;
  options.precision = precision;
  options.num_threads = num_threads;
  options.strategy = strategy;
  return options;
}

class EveryCheckpoint : public ::testing::TestWithParam<const char*> {};

TEST_P(EveryCheckpoint, LoadsTheValuesThatItsTensorsStandFor) {
  const ExpectedValues expected(GetParam());
  ASSERT_TRUE(expected.status().ok()) << expected.status();
  auto checkpoint = Checkpoint::Open(CheckpointPath(GetParam()));
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
  auto weights = LoadWeights(*checkpoint, Options(Precision::kReference, 2));
  ASSERT_TRUE(weights.ok()) << weights.status();
  for (const TensorSlot& slot : MainTensors(checkpoint->config(), *weights)) {
    EXPECT_TRUE(SameBits(Loaded(slot), expected.Of(slot.name))) << slot.name;
  }
}

TEST_P(EveryCheckpoint, LoadsTheSameBytesWithEveryStrategyAndNumberOfThreads) {
  auto checkpoint = Checkpoint::Open(CheckpointPath(GetParam()));
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
  auto first = LoadWeights(*checkpoint, Options(Precision::kNative, 1));
  ASSERT_TRUE(first.ok()) << first.status();
  const std::vector<std::byte> bytes = AllBytes(checkpoint->config(), *first);
  for (const LoadStrategy strategy :
       {LoadStrategy::kLazy, LoadStrategy::kEager, LoadStrategy::kPrefetch}) {
    auto weights = LoadWeights(*checkpoint, Options(Precision::kNative, 3, strategy));
    ASSERT_TRUE(weights.ok()) << weights.status();
    EXPECT_TRUE(AllBytes(checkpoint->config(), *weights) == bytes);
  }
}

INSTANTIATE_TEST_SUITE_P(Formats, EveryCheckpoint, ::testing::ValuesIn(testing::kCheckpointNames),
                         [](const auto& info) { return std::string(info.param); });

// Formats of the linears of layer 3 (learned routing, ratio 128) in native precision.
struct ExpectedFormats {
  const char* name;
  WeightFormat wq_a, wq_b, wo_a, wo_b, expert, shared, compressor;
};

class NativeFormats : public ::testing::TestWithParam<ExpectedFormats> {};

TEST_P(NativeFormats, AreThoseOfTheCheckpoint) {
  const ExpectedFormats& expected = GetParam();
  auto checkpoint = Checkpoint::Open(CheckpointPath(expected.name));
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
  auto weights = LoadWeights(*checkpoint, Options(Precision::kNative, 1));
  ASSERT_TRUE(weights.ok()) << weights.status();
  const Layer& layer = weights->layers[3];
  EXPECT_EQ(layer.attention.wq_a.format, expected.wq_a);
  EXPECT_EQ(layer.attention.wq_b.format, expected.wq_b);
  ASSERT_EQ(layer.attention.wo_a.size(), 2U);
  EXPECT_EQ(layer.attention.wo_a[1].format, expected.wo_a);
  EXPECT_EQ(layer.attention.wo_a[1].out, 64);
  EXPECT_EQ(layer.attention.wo_b.format, expected.wo_b);
  EXPECT_EQ(layer.moe.experts[7].down.format, expected.expert);
  EXPECT_EQ(layer.moe.shared[0].down.format, expected.shared);
  EXPECT_EQ(layer.attention.compressor.wkv.format, expected.compressor);
  EXPECT_EQ(layer.moe.router.format, WeightFormat::kF32);
  EXPECT_EQ(layer.attn_hc.fn.format, WeightFormat::kF32);
  EXPECT_EQ(weights->embed.bf16.empty(), std::string(expected.name) == "fp32");
  EXPECT_TRUE(layer.moe.token_experts.empty());
  EXPECT_EQ(weights->layers[2].moe.token_experts.size(), 512U * 2);
}

constexpr auto kF32 = WeightFormat::kF32;
constexpr auto kBf16 = WeightFormat::kBf16;
constexpr auto kFp8 = WeightFormat::kFp8Block;
constexpr auto kFp4 = WeightFormat::kFp4;
constexpr auto kInt8 = WeightFormat::kInt8;
constexpr auto kInt4 = WeightFormat::kInt4;

INSTANTIATE_TEST_SUITE_P(
    Table, NativeFormats,
    ::testing::Values(
        ExpectedFormats{"fp32", kF32, kF32, kF32, kF32, kF32, kF32, kF32},
        ExpectedFormats{"bf16", kBf16, kBf16, kBf16, kBf16, kBf16, kBf16, kBf16},
        ExpectedFormats{"fp8fp4", kFp8, kFp8, kFp8, kFp8, kFp4, kFp8, kBf16},
        ExpectedFormats{"fp8base", kFp8, kFp8, kFp8, kFp8, kFp8, kFp8, kBf16},
        ExpectedFormats{"w8a8_recipe_a", kInt8, kInt8, kBf16, kBf16, kInt8, kInt8, kBf16},
        ExpectedFormats{"w8a8_recipe_b", kBf16, kInt8, kBf16, kInt8, kInt8, kInt8, kBf16},
        ExpectedFormats{"w4a8", kInt8, kInt8, kBf16, kBf16, kInt4, kInt8, kBf16}),
    [](const auto& info) { return std::string(info.param.name); });

TEST(LoadWeights, ReportsProgressUpToTheEnd) {
  auto checkpoint = Checkpoint::Open(CheckpointPath("fp8fp4"));
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
  LoadOptions options = Options(Precision::kNative, 2);
  int64_t last = 0;
  int64_t total = 0;
  options.progress = [&](int64_t done, int64_t all) {
    EXPECT_GT(done, last);
    last = done;
    total = all;
  };
  ASSERT_TRUE(LoadWeights(*checkpoint, options).ok());
  EXPECT_EQ(last, total);
  EXPECT_GT(total, 1 << 20);
}

TEST(LoadWeights, OutlivesTheCheckpoint) {
  auto checkpoint = Checkpoint::Open(CheckpointPath("fp32"));
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
  const ModelConfig config = checkpoint->config();
  auto weights = LoadWeights(*checkpoint, Options(Precision::kNative, 1));
  checkpoint = absl::UnknownError("closed");
  ASSERT_TRUE(weights.ok());
  EXPECT_EQ(weights->norm.size(), static_cast<size_t>(config.hidden_size));
  EXPECT_FALSE(AllBytes(config, *weights).empty());
}

TEST(Summarize, CountsTensorsBytesAndDrafts) {
  const auto summarize = [](const char* name) {
    const auto checkpoint = Checkpoint::Open(CheckpointPath(name));
    EXPECT_TRUE(checkpoint.ok()) << checkpoint.status();
    return Summarize(*checkpoint, Precision::kNative);
  };
  const auto mtp = summarize("fp8fp4");
  ASSERT_TRUE(mtp.ok()) << mtp.status();
  EXPECT_EQ(mtp->draft_kind, DrafterKind::kMtp);
  EXPECT_EQ(mtp->draft_blocks, 1);
  const auto dspark = summarize("fp8fp4_dspark");
  ASSERT_TRUE(dspark.ok()) << dspark.status();
  EXPECT_EQ(dspark->draft_kind, DrafterKind::kDspark);
  EXPECT_EQ(dspark->draft_blocks, 3);
  const auto none = summarize("fp8fp4_resharded");
  ASSERT_TRUE(none.ok()) << none.status();
  EXPECT_EQ(none->draft_kind, DrafterKind::kNone);
  EXPECT_EQ(none->main.tensors, mtp->main.tensors);
  EXPECT_EQ(none->main.bytes, dspark->main.bytes);
  EXPECT_EQ(none->weight_bytes, mtp->weight_bytes);
}

}  // namespace
}  // namespace fulgur::model

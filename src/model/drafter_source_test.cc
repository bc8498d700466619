#include "model/drafter_source.h"

#include <cstring>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "model/testing/checkpoint_editor.h"
#include "model/testing/checkpoints.h"
#include "model/weight_loader.h"

namespace fulgur::model {
namespace {

using testing::CheckpointEditor;
using testing::CheckpointPath;
using ::testing::HasSubstr;

Checkpoint Open(const std::string& name) {
  auto checkpoint = Checkpoint::Open(CheckpointPath(name));
  EXPECT_TRUE(checkpoint.ok()) << checkpoint.status();
  return *std::move(checkpoint);
}

std::string Refusal(const Checkpoint& main, const Checkpoint& source,
                    std::optional<DrafterKind> wanted) {
  const auto config = UseDrafter(main.config(), source, wanted);
  EXPECT_EQ(config.status().code(), absl::StatusCode::kInvalidArgument);
  return std::string(config.status().message());
}

TEST(UseDrafter, TakesWhatTheTensorsSay) {
  const Checkpoint dspark = Open("fp8fp4_dspark");
  const auto config = UseDrafter(dspark.config(), dspark, DrafterKind::kDspark);
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(dspark.config().num_draft_blocks, 1);  // what its config.json says
  EXPECT_EQ(config->num_draft_blocks, 3);
  EXPECT_EQ(config->NumDraftLayers(), 3);
  EXPECT_EQ(TrainedDrafts(*config), 5);
  const Checkpoint mtp = Open("fp8fp4");
  const auto other = UseDrafter(mtp.config(), mtp);
  ASSERT_TRUE(other.ok()) << other.status();
  EXPECT_EQ(other->drafter, DrafterKind::kMtp);
  EXPECT_EQ(TrainedDrafts(*other), 1);
  EXPECT_EQ(TrainedDrafts(mtp.config()), 0);
}

TEST(UseDrafter, NamesTheMethodThatFits) {
  const Checkpoint mtp = Open("fp8fp4");
  const Checkpoint dspark = Open("fp8fp4_dspark");
  EXPECT_THAT(Refusal(dspark, dspark, DrafterKind::kMtp),
              HasSubstr("has DSpark stages, so the method \"mtp\" cannot be used; use method "
                        "\"dspark\""));
  EXPECT_THAT(Refusal(mtp, mtp, DrafterKind::kDspark), HasSubstr("use method \"mtp\""));
  const Checkpoint none = Open("fp32");
  EXPECT_THAT(Refusal(none, none, std::nullopt), HasSubstr("carries no drafter"));
}

TEST(UseDrafter, RefusesOtherDimensions) {
  CheckpointEditor editor("fp8fp4");
  editor.ReplaceText("config.json", "\"sliding_window\": 16", "\"sliding_window\": 17");
  const auto source = editor.Write();
  ASSERT_TRUE(source.ok()) << source.status();
  EXPECT_THAT(Refusal(Open("fp32"), *source, std::nullopt),
              HasSubstr("\"sliding_window\" is 17, but the model that it would draft for has 16"));
}

TEST(UseDrafter, RefusesACompressedDraftBlock) {
  CheckpointEditor editor("fp8fp4");
  editor.ReplaceText("config.json", "  4,\n  0\n", "  4,\n  4\n");
  const auto source = editor.Write();
  ASSERT_TRUE(source.ok()) << source.status();
  EXPECT_THAT(Refusal(*source, *source, std::nullopt),
              HasSubstr("\"compress_ratios\" has 4 for draft block mtp.0; expected 0"));
}

// Only tensors mtp.*, for a model in another format.
TEST(LoadWeights, TakesTheDrafterOfAFolderOfItsOwn) {
  const Checkpoint main = Open("bf16");
  for (const char* name : {"fp8fp4", "fp8fp4_dspark", "w8a8_recipe_a", "w8a8_recipe_b"}) {
    SCOPED_TRACE(name);
    CheckpointEditor editor(name);
    editor.Remove([](const std::string& tensor) { return !tensor.starts_with("mtp."); });
    const auto source = editor.Write();
    ASSERT_TRUE(source.ok()) << source.status();
    const auto config = UseDrafter(main.config(), *source);
    ASSERT_TRUE(config.ok()) << config.status();
    const auto weights = LoadWeights(main, {.drafter = &*source, .progress = nullptr});
    ASSERT_TRUE(weights.ok()) << weights.status();
    EXPECT_EQ(static_cast<int64_t>(weights->drafter.layers.size()), config->NumDraftLayers());
    ASSERT_NE(weights->drafter.storage, nullptr);
    const auto bytes = DrafterBytes(*source, Precision::kNative);
    ASSERT_TRUE(bytes.ok()) << bytes.status();
    EXPECT_LE(*bytes, weights->drafter.storage->size_bytes());

    const Checkpoint whole = Open(name);
    const auto own = LoadWeights(whole, {.drafter = &whole, .progress = nullptr});
    ASSERT_TRUE(own.ok()) << own.status();
    const kernels::PackedLinear& a = own->drafter.layers.back().attention.wkv;
    const kernels::PackedLinear& b = weights->drafter.layers.back().attention.wkv;
    EXPECT_EQ(a.format, b.format);
    ASSERT_EQ(a.bytes.size(), b.bytes.size());
    EXPECT_EQ(std::memcmp(a.bytes.data(), b.bytes.data(), a.bytes.size()), 0);
  }
}

TEST(LoadWeights, RefusesAnIncompleteDrafterFolder) {
  CheckpointEditor editor("fp8fp4");
  editor.Remove([](const std::string& tensor) {
    return !tensor.starts_with("mtp.") || tensor == "mtp.0.hnorm.weight";
  });
  const auto source = editor.Write();
  ASSERT_TRUE(source.ok()) << source.status();
  const Checkpoint main = Open("bf16");
  const auto weights = LoadWeights(main, {.drafter = &*source, .progress = nullptr});
  EXPECT_EQ(weights.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(weights.status().message()),
              HasSubstr("1 missing: mtp.0.hnorm.weight (expected [256])"));
}

TEST(LoadWeights, LoadsNoDrafterUnlessAsked) {
  const Checkpoint checkpoint = Open("fp8fp4");
  const auto weights = LoadWeights(checkpoint, LoadOptions());
  ASSERT_TRUE(weights.ok()) << weights.status();
  EXPECT_TRUE(weights->drafter.layers.empty());
  const auto summary = Summarize(checkpoint, Precision::kNative);
  ASSERT_TRUE(summary.ok()) << summary.status();
  const auto with_drafter = LoadWeights(checkpoint, {.drafter = &checkpoint, .progress = nullptr});
  ASSERT_TRUE(with_drafter.ok()) << with_drafter.status();
  EXPECT_EQ(with_drafter->drafter.storage, nullptr);
  EXPECT_GE(with_drafter->storage->size_bytes(), summary->weight_bytes + summary->drafter_bytes);
}

}  // namespace
}  // namespace fulgur::model

#include "model/inventory.h"

#include <cstring>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "model/testing/checkpoint_editor.h"
#include "model/testing/checkpoints.h"
#include "model/weight_loader.h"

namespace fulgur::model {
namespace {

using tensor::DType;
using testing::CheckpointEditor;
using ::testing::HasSubstr;

absl::Status Check(const CheckpointEditor& editor) {
  const absl::StatusOr<Checkpoint> checkpoint = editor.Write();
  if (!checkpoint.ok()) return checkpoint.status();
  return Summarize(*checkpoint, Precision::kNative).status();
}

absl::Status Load(const CheckpointEditor& editor) {
  const absl::StatusOr<Checkpoint> checkpoint = editor.Write();
  if (!checkpoint.ok()) return checkpoint.status();
  return LoadWeights(*checkpoint, LoadOptions()).status();
}

std::string Message(const absl::Status& status) { return std::string(status.message()); }

bool Contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

struct BadCheckpoint {
  const char* name;
  const char* source;
  void (*edit)(CheckpointEditor&);
  std::vector<const char*> error;  // parts of the message
};

class RefusedCheckpoint : public ::testing::TestWithParam<BadCheckpoint> {};

TEST_P(RefusedCheckpoint, IsDescribedInOneSentence) {
  CheckpointEditor editor(GetParam().source);
  GetParam().edit(editor);
  const absl::Status status = Load(editor);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
  for (const char* part : GetParam().error) EXPECT_THAT(Message(status), HasSubstr(part));
  EXPECT_LT(status.message().size(), 1200U);
}

void DropWeight(CheckpointEditor& editor) {
  editor.Remove([](const std::string& name) { return name == "layers.3.ffn.experts.5.w2.weight"; });
}

void DropLayer(CheckpointEditor& editor) {
  editor.Remove([](const std::string& name) { return name.starts_with("layers.6."); });
}

void DoEverythingWrong(CheckpointEditor& editor) {
  DropWeight(editor);
  editor.SetZeros("layers.9.attn.wkv.weight", DType::kBf16, {2, 2});
  editor.SetZeros("layers.1.attn_norm.weight", DType::kBf16, {255});
  editor.SetZeros("norm.weight", DType::kI32, {256});
}

void RepeatUnderAlias(CheckpointEditor& editor) {
  editor.SetZeros("model.norm.weight", DType::kBf16, {256});
}

void RenumberDraft(CheckpointEditor& editor) {
  editor.Rename([](const std::string& name) {
    return name.starts_with("mtp.0.") ? "mtp.2." + name.substr(6) : name;
  });
}

void NonZeroOffset(CheckpointEditor& editor) {
  const float value = 1.0F;
  std::vector<std::byte> bytes(128 * sizeof(float));
  std::memcpy(bytes.data() + 16, &value, sizeof(value));
  editor.Set("layers.0.attn.wq_a.weight_offset", DType::kF32, {128, 1}, bytes);
}

void ForeignExpert(CheckpointEditor& editor) {
  const int64_t expert = 8;
  std::vector<std::byte> bytes(512 * 2 * sizeof(int64_t));
  std::memcpy(bytes.data() + 80, &expert, sizeof(expert));
  editor.Set("layers.1.ffn.gate.tid2eid", DType::kI64, {512, 2}, bytes);
}

INSTANTIATE_TEST_SUITE_P(
    Table, RefusedCheckpoint,
    ::testing::Values(
        BadCheckpoint{"MissingWeight",
                      "fp8fp4",
                      DropWeight,
                      {"1 tensor is not what config.json describes (1 missing: "
                       "layers.3.ffn.experts.5.w2.weight (expected [256, 128]))"}},
        BadCheckpoint{"MissingScale",
                      "fp8fp4",
                      [](CheckpointEditor& editor) {
                        editor.Remove([](const std::string& name) {
                          return name == "layers.0.attn.wq_b.scale";
                        });
                      },
                      {"1 missing: layers.0.attn.wq_b.scale (expected [8, 1])"}},
        BadCheckpoint{
            "MissingLayer",
            "bf16",
            DropLayer,
            {"55 tensors are not what config.json describes (55 missing: layers.6.", ", ..."}},
        BadCheckpoint{"EmptyCheckpoint",
                      "fp32",
                      [](CheckpointEditor& editor) {
                        editor.Remove([](const std::string&) { return true; });
                      },
                      {"missing: embed.weight (expected [512, 256]), layers.0."}},
        BadCheckpoint{"UnexpectedTensor",
                      "fp8fp4",
                      [](CheckpointEditor& editor) {
                        editor.SetZeros("layers.0.attn.wq_c.weight", DType::kBf16, {2});
                      },
                      {"(1 unexpected: layers.0.attn.wq_c.weight in model.safetensors)"}},
        BadCheckpoint{"WrongShape",
                      "fp8fp4",
                      [](CheckpointEditor& editor) {
                        editor.SetZeros("layers.0.attn.wq_a.weight", DType::kF8E4M3, {256, 128});
                      },
                      {"1 of a wrong shape: layers.0.attn.wq_a.weight in model.safetensors is "
                       "[256, 128] (expected [128, 256])"}},
        BadCheckpoint{
            "WrongScaleShape",
            "fp8fp4",
            [](CheckpointEditor& editor) {
              editor.SetZeros("layers.0.attn.wq_a.scale", DType::kF8E8M0, {2, 1});
            },
            {"layers.0.attn.wq_a.scale in model.safetensors is [2, 1] (expected [1, 2])"}},
        BadCheckpoint{"WrongType",
                      "fp8fp4",
                      [](CheckpointEditor& editor) {
                        editor.SetZeros("layers.0.attn_norm.weight", DType::kI32, {256});
                      },
                      {"1 of a wrong type: layers.0.attn_norm.weight in model.safetensors is I32 "
                       "(expected BF16 or F16 or F32)"}},
        BadCheckpoint{"WrongLinearType",
                      "bf16",
                      [](CheckpointEditor& editor) {
                        editor.SetZeros("head.weight", DType::kI64, {512, 256});
                      },
                      {"head.weight in model.safetensors is I64"}},
        BadCheckpoint{"WrongScaleType",
                      "fp8fp4",
                      [](CheckpointEditor& editor) {
                        editor.SetZeros("layers.0.attn.wq_a.scale", DType::kBf16, {1, 2});
                      },
                      {"is BF16 (expected F8_E8M0 or F32)"}},
        BadCheckpoint{"Everything",
                      "fp8fp4",
                      DoEverythingWrong,
                      {"4 tensors are not what config.json describes (1 missing: ",
                       "; 1 unexpected: ", "; 1 of a wrong shape: ", "; 1 of a wrong type: "}},
        BadCheckpoint{"UnexplainedInt8",
                      "bf16",
                      [](CheckpointEditor& editor) {
                        editor.SetZeros("head.weight", DType::kI8, {512, 256});
                      },
                      {"head.weight in model.safetensors is I8, but neither a .scale nor "
                       "quant_model_description.json says how"}},
        BadCheckpoint{"StaticQuantisation",
                      "w8a8_recipe_a",
                      [](CheckpointEditor& editor) {
                        editor.ReplaceText("quant_model_description.json",
                                           R"("layers.0.attn.wq_a.weight": "W8A8_DYNAMIC")",
                                           R"("layers.0.attn.wq_a.weight": "W8A8")");
                      },
                      {"1 unsupported: layers.0.attn.wq_a.weight in model.safetensors is described "
                       "as W8A8; accepted are FLOAT, W8A8_DYNAMIC and W4A8_DYNAMIC"}},
        BadCheckpoint{"DescriptionAgainstTensor",
                      "w8a8_recipe_a",
                      [](CheckpointEditor& editor) {
                        editor.ReplaceText("quant_model_description.json",
                                           R"("head.weight": "FLOAT")",
                                           R"("head.weight": "W8A8_DYNAMIC")");
                      },
                      {"head.weight_scale (expected [512, 1])",
                       "head.weight in model.safetensors is "
                       "BF16 (expected I8)"}},
        BadCheckpoint{
            "AsymmetricQuantisation",
            "w8a8_recipe_a",
            NonZeroOffset,
            {"1 unsupported: layers.0.attn.wq_a.weight_offset in model.safetensors is not "
             "zero; only symmetric quantisation is supported"}},
        BadCheckpoint{
            "ForeignExpert",
            "fp8fp4",
            ForeignExpert,
            {"layers.1.ffn.gate.tid2eid in model.safetensors names expert 8; accepted are 0 "
             "to 7"}},
        BadCheckpoint{"SameTensorTwice",
                      "bf16",
                      RepeatUnderAlias,
                      {"\"norm.weight\" in model.safetensors and \"model.norm.weight\" in "
                       "model.safetensors are the same one"}},
        BadCheckpoint{"IncompleteDraft",
                      "fp8fp4",
                      [](CheckpointEditor& editor) {
                        editor.Remove(
                            [](const std::string& name) { return name == "mtp.0.enorm.weight"; });
                      },
                      {"1 missing: mtp.0.enorm.weight (expected [256])"}},
        BadCheckpoint{"BothKindsOfDrafters",
                      "fp8fp4_dspark",
                      [](CheckpointEditor& editor) {
                        editor.SetZeros("mtp.0.e_proj.weight", DType::kBf16, {256, 256});
                      },
                      {"1 unexpected: mtp.0.e_proj.weight"}},
        BadCheckpoint{
            "DraftOfAWrongShape",
            "fp8fp4_dspark",
            [](CheckpointEditor& editor) {
              editor.SetZeros("mtp.2.markov_head.markov_w1.weight", DType::kBf16, {512, 31});
            },
            {"1 of a wrong shape: mtp.2.markov_head.markov_w1.weight", "[512, 31]",
             "expected [512, 32]"}},
        BadCheckpoint{"AStageTooFew",
                      "fp8fp4_dspark",
                      [](CheckpointEditor& editor) {
                        editor.Remove(
                            [](const std::string& name) { return name.starts_with("mtp.2."); });
                      },
                      {"has 2 DSpark stages (mtp.0 to mtp.1)", "names 3 layers"}},
        BadCheckpoint{"DraftNumberedWrongly", "fp8fp4", RenumberDraft, {"unexpected: mtp.2."}},
        BadCheckpoint{"DsparkWithoutConfig",
                      "fp8fp4_dspark",
                      [](CheckpointEditor& editor) {
                        editor.ReplaceText("config.json", "dspark_block_size",
                                           "dspark_block_count");
                      },
                      {"has DSpark stages (mtp.0.main_proj), but its config.json has no "
                       "\"dspark_block_size\""}}),
    [](const auto& info) { return std::string(info.param.name); });

std::string Replaced(std::string name, const std::string& from, const std::string& to) {
  const size_t at = name.find(from);
  if (at != std::string::npos) name.replace(at, from.size(), to);
  return name;
}

TEST(Inventory, AcceptsTheNamesOfOtherTools) {
  CheckpointEditor editor("fp8fp4");
  editor.Rename([](const std::string& name) {
    std::string alias = Replaced(name, ".attn.", ".self_attn.");
    alias = Replaced(alias, ".ffn.", ".mlp.");
    alias = Replaced(alias, ".gate.bias", ".gate.e_score_correction_bias");
    if (alias.ends_with(".scale")) alias = Replaced(alias, ".scale", ".weight_scale_inv");
    return "model." + alias;
  });
  EXPECT_TRUE(Load(editor).ok()) << Load(editor);
}

TEST(Inventory, AcceptsHalfPrecisionAndShortTables) {
  CheckpointEditor editor("bf16");
  editor.SetZeros("layers.0.attn.wq_a.weight", DType::kF16, {128, 256});
  editor.SetZeros("layers.0.attn_norm.weight", DType::kF16, {256});
  editor.SetZeros("embed.weight", DType::kF16, {512, 256});
  editor.SetZeros("layers.0.ffn.gate.tid2eid", DType::kI32, {512, 2});
  const auto checkpoint = editor.Write();
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
  const auto weights = LoadWeights(*checkpoint, LoadOptions());
  ASSERT_TRUE(weights.ok()) << weights.status();
  EXPECT_EQ(weights->layers[0].attention.wq_a.format, kernels::WeightFormat::kF32);
  EXPECT_EQ(weights->layers[1].attention.wq_a.format, kernels::WeightFormat::kBf16);
  EXPECT_EQ(weights->embed.f32.size(), 512U * 256);
}

TEST(Inventory, AcceptsScalesAsListsAndWithoutOffsets) {
  CheckpointEditor editor("w8a8_recipe_a");
  editor.Remove([](const std::string& name) { return Contains(name, ".weight_offset"); });
  editor.Find("layers.0.attn.wq_a.weight_scale").shape = {128};
  EXPECT_TRUE(Load(editor).ok()) << Load(editor);
}

TEST(Inventory, AcceptsCopiesOfEmbeddingAndHeadInDrafts) {
  CheckpointEditor editor("fp8fp4_dspark");
  editor.SetZeros("mtp.0.embed.weight", DType::kBf16, {512, 256});
  editor.SetZeros("mtp.2.head.weight", DType::kBf16, {512, 256});
  EXPECT_TRUE(Check(editor).ok()) << Check(editor);
}

}  // namespace
}  // namespace fulgur::model

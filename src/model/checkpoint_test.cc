#include "model/checkpoint.h"

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "model/quant_description.h"
#include "model/shard_index.h"
#include "model/tensor_names.h"

namespace fulgur::model {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr const char* kConfig = R"({"model_type":"deepseek_v4","hidden_size":8,
  "num_hidden_layers":1,"max_position_embeddings":64,"rms_norm_eps":1e-6,"rope_theta":10000,
  "compress_rope_theta":10000,"vocab_size":16,"num_attention_heads":2,"head_dim":4,
  "qk_rope_head_dim":2,"q_lora_rank":4,"o_lora_rank":4,"o_groups":1,"sliding_window":4,
  "compress_ratios":[0],"n_routed_experts":2,"num_experts_per_tok":1,"moe_intermediate_size":4,
  "hc_mult":2,"hc_sinkhorn_iters":1,"hc_eps":1e-6})";

class CheckpointFolder : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = ::testing::TempDir() + "checkpoint_folder";
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
    Write("config.json", kConfig);
  }

  void Write(const std::string& name, const std::string& text) {
    std::ofstream(folder_ + "/" + name) << text;
  }

  // A file with one-byte tensors of the given names.
  void WriteShard(const std::string& file, const std::vector<std::string>& names) {
    static const std::byte kByte{7};
    std::vector<io::TensorView> tensors;
    for (const std::string& name : names) {
      tensors.push_back({name, tensor::DType::kU8, {1}, {&kByte, 1}});
    }
    ASSERT_TRUE(io::WriteSafetensors(folder_ + "/" + file, tensors).ok());
  }

  std::string Error() { return std::string(Checkpoint::Open(folder_).status().message()); }

  std::string folder_;
};

TEST_F(CheckpointFolder, MayHaveOneFileWithoutIndex) {
  WriteShard("model.safetensors", {"embed.weight", "norm.weight"});
  const auto checkpoint = Checkpoint::Open(folder_);
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
  EXPECT_EQ(checkpoint->tensors().size(), 2U);
  ASSERT_NE(checkpoint->Find("norm.weight"), nullptr);
  EXPECT_EQ(checkpoint->FileOf(*checkpoint->Find("norm.weight")), "model.safetensors");
  EXPECT_EQ(checkpoint->Find("head.weight"), nullptr);
  EXPECT_EQ(checkpoint->config().hidden_size, 8);
}

TEST_F(CheckpointFolder, MayHaveManyFilesWithIndex) {
  WriteShard("a.safetensors", {"embed.weight"});
  WriteShard("b.safetensors", {"model.norm.weight"});
  WriteShard("unrelated.safetensors", {"x"});
  Write("model.safetensors.index.json",
        R"({"metadata":{"total_size":2},"weight_map":{"embed.weight":"a.safetensors",)"
        R"("model.norm.weight":"b.safetensors"}})");
  const auto checkpoint = Checkpoint::Open(folder_);
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
  EXPECT_EQ(checkpoint->files().size(), 2U);
  EXPECT_NE(checkpoint->Find("norm.weight"), nullptr);
}

TEST_F(CheckpointFolder, NamesMissingFiles) {
  WriteShard("a.safetensors", {"embed.weight"});
  Write("model.safetensors.index.json",
        R"({"weight_map":{"embed.weight":"a.safetensors","norm.weight":"b.safetensors"}})");
  EXPECT_THAT(Error(), HasSubstr("1 of the 2 files that"));
  EXPECT_THAT(Error(), HasSubstr("\"b.safetensors\""));
}

TEST_F(CheckpointFolder, ComparesIndexAndFiles) {
  WriteShard("a.safetensors", {"embed.weight", "stray.weight"});
  Write("model.safetensors.index.json",
        R"({"weight_map":{"embed.weight":"a.safetensors","norm.weight":"a.safetensors"}})");
  EXPECT_THAT(Error(), HasSubstr("1 missing: \"norm.weight\", which the index places in "
                                 "a.safetensors"));
  EXPECT_THAT(Error(), HasSubstr("1 unexpected: \"stray.weight\" in a.safetensors"));
}

TEST_F(CheckpointFolder, RefusesATensorInTwoFiles) {
  WriteShard("a.safetensors", {"embed.weight"});
  WriteShard("b.safetensors", {"embed.weight"});
  EXPECT_THAT(Error(), HasSubstr("\"embed.weight\" in a.safetensors and \"embed.weight\" in "
                                 "b.safetensors are the same one"));
}

TEST_F(CheckpointFolder, RefusesTwoIndexFiles) {
  Write("model.safetensors.index.json", "{}");
  Write("quant_model_weights.safetensors.index.json", "{}");
  EXPECT_THAT(Error(), HasSubstr("has 2 index files"));
}

TEST_F(CheckpointFolder, RefusesAFolderWithoutTensorsOrWithoutConfig) {
  EXPECT_THAT(Error(), HasSubstr("has no *.safetensors files"));
  WriteShard("a.safetensors", {"embed.weight"});
  std::filesystem::remove(folder_ + "/config.json");
  EXPECT_THAT(Error(), HasSubstr("/config.json: cannot be opened"));
  std::filesystem::remove_all(folder_);
  EXPECT_THAT(Error(), HasSubstr("checkpoint folder " + folder_ + " cannot be read"));
}

TEST_F(CheckpointFolder, NamesADamagedFile) {
  WriteShard("a.safetensors", {"embed.weight"});
  std::filesystem::resize_file(folder_ + "/a.safetensors", 20);
  EXPECT_THAT(Error(), HasSubstr("/a.safetensors announces a header"));
}

struct BadIndex {
  const char* name;
  const char* text;
  const char* error;
};

class RefusedIndex : public ::testing::TestWithParam<BadIndex> {};

TEST_P(RefusedIndex, IsDescribed) {
  EXPECT_THAT(std::string(ParseShardIndex(GetParam().text, "x.json").status().message()),
              HasSubstr(GetParam().error));
}

INSTANTIATE_TEST_SUITE_P(
    Table, RefusedIndex,
    ::testing::Values(
        BadIndex{"NotJson", "{", "x.json is not valid JSON"},
        BadIndex{"NotAnObject", "[]", "x.json is not a JSON object"},
        BadIndex{"NoMap", R"({"metadata":{}})", "has no object \"weight_map\""},
        BadIndex{"MapIsAList", R"({"weight_map":[]})", "has no object \"weight_map\""},
        BadIndex{"FileIsANumber", R"({"weight_map":{"a":1}})", "places \"a\" in 1"},
        BadIndex{"FileElsewhere", R"({"weight_map":{"a":"../b"}})",
                 "the name of a file in the same folder"},
        BadIndex{"FileIsAbsolute", R"({"weight_map":{"a":"/etc/passwd"}})", "in the same folder"},
        BadIndex{"FileIsAFolder", R"({"weight_map":{"a":".."}})", "in the same folder"},
        BadIndex{"NameTwice", R"({"weight_map":{"a":"b","a":"c"}})", "names \"a\" twice"}),
    [](const auto& info) { return std::string(info.param.name); });

TEST(ShardIndex, ListsEveryFileOnce) {
  const auto index = ParseShardIndex(R"({"weight_map":{"a":"2","b":"1","c":"2"}})", "x.index.json");
  ASSERT_TRUE(index.ok()) << index.status();
  EXPECT_THAT(index->files, ElementsAre("1", "2"));
}

TEST(TensorNames, AreMadeCanonical) {
  EXPECT_EQ(CanonicalName("model.layers.3.self_attn.wq_a.weight_scale_inv"),
            "layers.3.attn.wq_a.scale");
  EXPECT_EQ(CanonicalName("layers.3.mlp.gate.e_score_correction_bias"), "layers.3.ffn.gate.bias");
  EXPECT_EQ(CanonicalName("layers.3.attn.wq_a.weight_scale"), "layers.3.attn.wq_a.weight_scale");
  EXPECT_EQ(CanonicalName("layers.3.hc_attn_scale"), "layers.3.hc_attn_scale");
  EXPECT_EQ(CanonicalName("model"), "model");
  EXPECT_EQ(CanonicalName(""), "");
  EXPECT_EQ(SiblingName("layers.3.attn.wq_a.weight", "scale"), "layers.3.attn.wq_a.scale");
}

TEST(QuantDescription, TakesTypesAndPassesOverMetadata) {
  const auto description = QuantDescription::Parse(
      R"({"version":"1.0.0","group_size":0,"metadata":{},"model.layers.0.self_attn.wq_a.weight":)"
      R"("W8A8_DYNAMIC","norm.weight":"FLOAT"})",
      "x.json");
  ASSERT_TRUE(description.ok()) << description.status();
  EXPECT_EQ(description->TypeOf("layers.0.attn.wq_a.weight"), "W8A8_DYNAMIC");
  EXPECT_EQ(description->TypeOf("norm.weight"), "FLOAT");
  EXPECT_EQ(description->TypeOf("not.described"), "FLOAT");
  EXPECT_THAT(std::string(QuantDescription::Parse("3", "x.json").status().message()),
              HasSubstr("x.json is not a JSON object"));
}

}  // namespace
}  // namespace fulgur::model

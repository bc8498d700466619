#include "model/config.h"

#include <filesystem>
#include <fstream>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "model/generation_config.h"
#include "nlohmann/json.hpp"

namespace fulgur::model {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

json Flash() {
  json ratios = {0, 0};
  for (int i = 0; i < 20; ++i) ratios.insert(ratios.end(), {4, 128});
  ratios.insert(ratios.end(), {4, 0});
  return {{"architectures", {"DeepseekV4ForCausalLM"}},
          {"model_type", "deepseek_v4"},
          {"hidden_size", 4096},
          {"num_hidden_layers", 43},
          {"num_attention_heads", 64},
          {"num_key_value_heads", 1},
          {"head_dim", 512},
          {"qk_rope_head_dim", 64},
          {"q_lora_rank", 1024},
          {"o_lora_rank", 1024},
          {"o_groups", 8},
          {"sliding_window", 128},
          {"compress_ratios", ratios},
          {"compress_rope_theta", 160000},
          {"rope_theta", 10000},
          {"rope_scaling",
           {{"type", "yarn"},
            {"factor", 16},
            {"original_max_position_embeddings", 65536},
            {"beta_fast", 32},
            {"beta_slow", 1}}},
          {"max_position_embeddings", 1048576},
          {"index_n_heads", 64},
          {"index_head_dim", 128},
          {"index_topk", 512},
          {"n_routed_experts", 256},
          {"n_shared_experts", 1},
          {"num_experts_per_tok", 6},
          {"moe_intermediate_size", 2048},
          {"num_hash_layers", 3},
          {"scoring_func", "sqrtsoftplus"},
          {"topk_method", "noaux_tc"},
          {"norm_topk_prob", true},
          {"routed_scaling_factor", 1.5},
          {"swiglu_limit", 10.0},
          {"hc_mult", 4},
          {"hc_sinkhorn_iters", 20},
          {"hc_eps", 1e-6},
          {"rms_norm_eps", 1e-6},
          {"hidden_act", "silu"},
          {"vocab_size", 129280},
          {"tie_word_embeddings", false},
          {"bos_token_id", 0},
          {"eos_token_id", 1},
          {"num_nextn_predict_layers", 1}};
}

absl::StatusOr<ModelConfig> Parse(const json& config) { return ParseConfig(config.dump()); }

TEST(Config, ReadsThePublishedFields) {
  const auto config = Parse(Flash());
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->hidden_size, 4096);
  EXPECT_EQ(config->num_layers, 43);
  EXPECT_EQ(config->Ratio(2), 4);
  EXPECT_EQ(config->Ratio(3), 128);
  EXPECT_EQ(config->rope_scaling.factor, 16.0F);
  EXPECT_EQ(config->rope_scaling.original_max_position, 65536);
  EXPECT_EQ(config->routed_scaling_factor, 1.5F);
  EXPECT_EQ(config->swiglu_limit, 10.0F);
  EXPECT_EQ(config->hc_eps, 1e-6F);
  EXPECT_EQ(config->num_draft_blocks, 1);
  EXPECT_EQ(config->dspark.block_size, 0);
  EXPECT_TRUE(config->IsHashLayer(2));
  EXPECT_FALSE(config->IsHashLayer(3));
  EXPECT_THAT(config->eos_tokens, ElementsAre(1));
}

TEST(Config, TreatsRatioOneAsNone) {
  json text = Flash();
  text["compress_ratios"][0] = 1;
  text["compress_ratios"][43] = 1;
  const auto config = Parse(text);
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->Ratio(0), 0);
  EXPECT_EQ(config->Ratio(43), 0);
}

TEST(Config, AcceptsBothSpellingsOfRopeScaling) {
  json text = Flash();
  text["rope_scaling"].erase("type");
  text["rope_scaling"]["rope_type"] = "yarn";
  ASSERT_TRUE(Parse(text).ok());
  EXPECT_EQ(Parse(text)->rope_scaling.factor, 16.0F);
  text["rope_scaling"] = nullptr;
  ASSERT_TRUE(Parse(text).ok());
  EXPECT_EQ(Parse(text)->rope_scaling.factor, 1.0F);
}

TEST(Config, AcceptsListsOfEndTokens) {
  json text = Flash();
  text["eos_token_id"] = {1, 7};
  ASSERT_TRUE(Parse(text).ok());
  EXPECT_THAT(Parse(text)->eos_tokens, ElementsAre(1, 7));
}

TEST(Config, ReadsDspark) {
  json text = Flash();
  text["dspark_block_size"] = 5;
  text["dspark_noise_token_id"] = 128799;
  text["dspark_target_layer_ids"] = {40, 41, 42};
  text["dspark_markov_rank"] = 256;
  const auto config = Parse(text);
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->dspark.block_size, 5);
  EXPECT_THAT(config->dspark.target_layers, ElementsAre(40, 41, 42));
}

TEST(Config, NeedsNoIndexerWithoutRatioFour) {
  json text = Flash();
  text["num_hidden_layers"] = 2;
  for (const char* name : {"index_n_heads", "index_head_dim", "index_topk", "num_hash_layers"}) {
    text.erase(name);
  }
  EXPECT_TRUE(Parse(text).ok()) << Parse(text).status();
}

struct BadConfig {
  const char* name;
  const char* field;
  json value;  // discarded: the field is removed
  const char* error;
};

class RefusedConfig : public ::testing::TestWithParam<BadConfig> {};

TEST_P(RefusedConfig, NamesFieldValueAndWhatIsAccepted) {
  json text = Flash();
  text.erase(GetParam().field);
  if (!GetParam().value.is_discarded()) text[GetParam().field] = GetParam().value;
  const absl::StatusOr<ModelConfig> config = Parse(text);
  ASSERT_FALSE(config.ok());
  EXPECT_THAT(std::string(config.status().message()), HasSubstr(GetParam().error));
  EXPECT_THAT(std::string(config.status().message()), HasSubstr("config.json: "));
}

const json kRemoved(json::value_t::discarded);

INSTANTIATE_TEST_SUITE_P(
    Table, RefusedConfig,
    ::testing::Values(
        BadConfig{"NoModelType", "model_type", kRemoved, "\"model_type\" is missing"},
        BadConfig{"OtherModel", "model_type", "deepseek_v41",
                  "is \\\"deepseek_v41\\\"; the only architecture"},
        BadConfig{"OtherArchitecture",
                  "architectures",
                  {"DeepseekV4ForConditionalGeneration"},
                  "the only architecture that this program runs is \"DeepseekV4ForCausalLM\""},
        BadConfig{"NoHiddenSize", "hidden_size", kRemoved,
                  "\"hidden_size\" is missing; expected an integer from 1 to 65536"},
        BadConfig{"NegativeSize", "hidden_size", -4, "\"hidden_size\" is -4; expected"},
        BadConfig{"SizeIsText", "hidden_size", "4096", "\"hidden_size\" is \\\"4096\\\""},
        BadConfig{"SizeIsFraction", "num_hidden_layers", 43.5, "\"num_hidden_layers\" is 43.5"},
        BadConfig{"AbsurdSize", "hidden_size", 1LL << 60, "expected an integer from 1 to 65536"},
        BadConfig{"AbsurdLayers", "num_hidden_layers", 1LL << 40, "\"num_hidden_layers\""},
        BadConfig{"FewRatios", "compress_ratios", {0, 0}, "at least 43 entries"},
        BadConfig{"OddRatio", "compress_ratios", json(std::vector<int>(44, 8)),
                  "expected a list of 0, 1, 4 and 128"},
        BadConfig{"RopeKind",
                  "rope_scaling",
                  {{"type", "linear"}, {"factor", 2}},
                  "rope_scaling: \"type\" is \\\"linear\\\"; expected \"yarn\""},
        BadConfig{"RopeWithoutLength",
                  "rope_scaling",
                  {{"type", "yarn"}, {"factor", 2}},
                  "\"original_max_position_embeddings\" is missing"},
        BadConfig{"RopeIsText", "rope_scaling", "yarn", "\"rope_scaling\" is not a JSON object"},
        BadConfig{"OddRopeDim", "qk_rope_head_dim", 63, "expected an even number"},
        BadConfig{"RopeWiderThanHead", "qk_rope_head_dim", 1024, "from 2 to 512"},
        BadConfig{"OddGroups", "o_groups", 7, "a divisor of the 64 attention heads"},
        BadConfig{"MoreChosenThanExperts", "num_experts_per_tok", 257, "from 1 to 256"},
        BadConfig{"MoreHashLayers", "num_hash_layers", 44, "from 0 to 43"},
        BadConfig{"SmallIndexHead", "index_head_dim", 32, "from 64 to"},
        BadConfig{"OtherScoring", "scoring_func", "sigmoid", "expected \"sqrtsoftplus\""},
        BadConfig{"KeyHeads", "num_key_value_heads", 8, "expected 1"},
        BadConfig{"SharedExperts", "n_shared_experts", 2, "expected 1"},
        BadConfig{"TiedHead", "tie_word_embeddings", true, "expected false"},
        BadConfig{"EndOutside", "eos_token_id", 129280, "from 0 to 129279"},
        BadConfig{"EndListOutside", "eos_token_id", {1, -1}, "from 0 to 129279"},
        BadConfig{"NegativeEpsilon", "rms_norm_eps", -1.0, "a number from 0 to 1"},
        BadConfig{"WideOutputGroup", "o_lora_rank", 16384, "at most 65536 over all output groups"},
        BadConfig{"OtherQuantization",
                  "quantization_config",
                  {{"quant_method", "gptq"}},
                  "quantization_config: \"quant_method\" is \\\"gptq\\\"; expected \"fp8\""},
        BadConfig{"OtherBlocks",
                  "quantization_config",
                  {{"quant_method", "fp8"}, {"weight_block_size", {1, 32}}},
                  "\"weight_block_size\" is [1,32]; expected [128,128]"},
        BadConfig{"DsparkWithoutRank", "dspark_block_size", 5, "\"dspark_noise_token_id\""}),
    [](const auto& info) { return std::string(info.param.name); });

TEST(Config, RefusesTextThatIsNoConfig) {
  EXPECT_THAT(std::string(ParseConfig("[1]").status().message()), HasSubstr("not a JSON object"));
  EXPECT_THAT(std::string(ParseConfig("{").status().message()), HasSubstr("not valid JSON"));
  EXPECT_THAT(std::string(ParseConfig(std::string(100000, '[')).status().message()),
              HasSubstr("config.json"));
}

class ConfigFolder : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = ::testing::TempDir() + "config_folder";
    std::filesystem::create_directories(folder_);
    std::filesystem::remove(folder_ + "/generation_config.json");
    Write("config.json", Flash().dump());
  }
  void Write(const std::string& name, const std::string& text) {
    std::ofstream(folder_ + "/" + name) << text;
  }

  std::string folder_;
};

TEST_F(ConfigFolder, AddsTheEndTokensOfTheGenerationConfig) {
  ASSERT_TRUE(LoadConfig(folder_).ok()) << LoadConfig(folder_).status();
  Write("generation_config.json", R"({"eos_token_id":[1,128803],"temperature":0.6})");
  const auto config = LoadConfig(folder_);
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_THAT(config->eos_tokens, ElementsAre(1, 128803));
  EXPECT_EQ(LoadGenerationConfig(folder_)->temperature, 0.6F);
  EXPECT_FALSE(LoadGenerationConfig(folder_)->top_p.has_value());
}

TEST_F(ConfigFolder, RefusesEndTokensOutsideTheVocabulary) {
  Write("generation_config.json", R"({"eos_token_id":129280})");
  EXPECT_THAT(std::string(LoadConfig(folder_).status().message()),
              HasSubstr("generation_config.json: \"eos_token_id\" names token 129280"));
}

TEST_F(ConfigFolder, NamesTheMissingFile) {
  std::filesystem::remove(folder_ + "/config.json");
  EXPECT_THAT(std::string(LoadConfig(folder_).status().message()), HasSubstr("/config.json"));
}

TEST(GenerationConfig, NamesAFieldThatItCannotUse) {
  EXPECT_THAT(std::string(ParseGenerationConfig(R"({"top_p":2})").status().message()),
              HasSubstr("generation_config.json: \"top_p\" is 2; expected a number from 0 to 1"));
}

}  // namespace
}  // namespace fulgur::model

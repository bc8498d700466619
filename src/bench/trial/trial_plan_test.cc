#include "bench/trial/trial_plan.h"

#include <gtest/gtest.h>

#include "bench/trial/trial_series.h"
#include "nlohmann/json.hpp"

namespace fulgur::bench {
namespace {

using Json = nlohmann::ordered_json;

// The five changes that a published DSpark deployment tried and rejected.
Json Published() {
  return Json::parse(R"({
    "format": "fulgur-trial-plan/1", "url": "http://127.0.0.1:6697", "start": "exec bash serve.sh",
    "base": {"BLOCK_SIZE": 128, "PREFIX_CACHE": "--no-enable-prefix-caching", "KV_TRANSFER": "",
             "ENFORCE_EAGER": "true", "MAX_NUM_SEQS": 256, "DSA_CP": "false"},
    "run": ["--suite", "seed"],
    "variants": [
      {"id": "block32_prefix_cache", "change": "block-size 32 with prefix caching",
       "set": {"BLOCK_SIZE": 32, "PREFIX_CACHE": "--enable-prefix-caching"}},
      {"id": "cpu_kv_offload", "set": {"KV_TRANSFER": "{\"kv_connector\": \"CPUOffloading\"}"}},
      {"id": "drafter_graph", "set": {"ENFORCE_EAGER": "false"}},
      {"id": "max_num_seqs_64", "set": {"MAX_NUM_SEQS": 64}},
      {"id": "dsa_cp", "set": {"DSA_CP": "true"}}]})");
}

std::string ErrorOf(const Json& plan) {
  const auto parsed = ParseTrialPlan(plan.dump(), "plan.json");
  return parsed.ok() ? "" : std::string(parsed.status().message());
}

TEST(TrialPlan, AVariantChangesItsOwnSettingsOnly) {
  const auto plan = ParseTrialPlan(Published().dump(), "plan.json");
  ASSERT_TRUE(plan.ok()) << plan.status();
  ASSERT_EQ(plan->variants.size(), 5U);
  const Settings settings = plan->SettingsOf(plan->variants.data());
  EXPECT_EQ(settings.at("BLOCK_SIZE"), "32");
  EXPECT_EQ(settings.at("MAX_NUM_SEQS"), "256");
  EXPECT_EQ(plan->SettingsOf(nullptr), plan->base);
  EXPECT_EQ(plan->variants[1].set.at("KV_TRANSFER"), R"({"kv_connector": "CPUOffloading"})");
  EXPECT_EQ(plan->variants[1].change, "cpu_kv_offload");
}

TEST(TrialPlan, TheBaseStandsAroundEveryVariant) {
  Json json = Published();
  json["rounds"] = 2;
  auto plan = ParseTrialPlan(json.dump(), "plan.json");
  ASSERT_TRUE(plan.ok()) << plan.status();
  ASSERT_TRUE(KeepVariants({"dsa_cp", "drafter_graph"}, *plan).ok());
  EXPECT_EQ(SeriesOrder(*plan), (std::vector<std::string>{"", "dsa_cp", "", "drafter_graph", "",
                                                          "drafter_graph", "", "dsa_cp", ""}));
  EXPECT_FALSE(KeepVariants({"other"}, *plan).ok());
}

TEST(TrialPlan, FewVariantsAreTriedMoreOften) {
  TrialPlan plan;
  plan.variants.resize(1);
  EXPECT_EQ(plan.Rounds(), 3);
  plan.variants.resize(2);
  EXPECT_EQ(plan.Rounds(), 2);
  plan.variants.resize(3);
  EXPECT_EQ(plan.Rounds(), 1);
  plan.variants.resize(5);
  EXPECT_EQ(plan.Rounds(), 1);
}

TEST(TrialPlan, SaysWhatIsWrong) {
  const auto with = [](const char* pointer, const Json& value) {
    Json json = Published();
    json[Json::json_pointer(pointer)] = value;
    return ErrorOf(json);
  };
  EXPECT_EQ(with("/format", "other"), "plan.json: \"format\" must be \"fulgur-trial-plan/1\"");
  EXPECT_EQ(with("/url", ""), "plan.json: \"url\" must be a text that is not empty");
  EXPECT_NE(with("/urls", "x").find("unknown field"), std::string::npos);
  EXPECT_NE(with("/variants/0/set", {{"BLOCKSIZE", 32}}).find("which \"base\" does not have"),
            std::string::npos);
  EXPECT_NE(with("/variants/0/set", {{"BLOCK_SIZE", 128}}).find("changes nothing"),
            std::string::npos);
  EXPECT_NE(with("/variants/0/id", "../up").find("\"id\" must be of letters"), std::string::npos);
  EXPECT_NE(with("/variants/0/id", "dsa_cp").find("two variants have the id"), std::string::npos);
  EXPECT_NE(with("/base/A B", "x").find("no name for an environment variable"), std::string::npos);
  EXPECT_NE(with("/base/DSA_CP", true).find("\"base.DSA_CP\" must be a text"), std::string::npos);
  EXPECT_NE(with("/start_limit_s", -1).find("\"start_limit_s\" must be a number"),
            std::string::npos);
  EXPECT_NE(with("/rounds", 0).find("\"rounds\" must be a whole number"), std::string::npos);
  EXPECT_NE(with("/health", "health").find("\"health\" must be a path"), std::string::npos);
  EXPECT_NE(with("/variants", Json::array()).find("\"variants\" must be"), std::string::npos);
  EXPECT_NE(with("/run", "--suite seed").find("\"run\" must be a list"), std::string::npos);
}

}  // namespace
}  // namespace fulgur::bench

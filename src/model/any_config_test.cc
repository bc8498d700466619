// Nothing is a special case of one config: sizes, layer orders and constants of all kinds give the
// logits of an independent program.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>

#include "model/config.h"
#include "model/testing/test_model.h"
#include "model/testing/tiny_model.h"

namespace fulgur::model {
namespace {

constexpr double kTolerance = 3e-5;

void ExpectLogits(const nlohmann::json& fixture, const std::vector<int64_t>& chunks) {
  const auto config = ParseConfig(fixture.at("config").dump());
  ASSERT_TRUE(config.ok()) << config.status();
  testing::TestModel model(*config, testing::MakeWeights(*config, testing::Storage::kF32, true),
                           {});
  const auto tokens = fixture.at("tokens").get<std::vector<int32_t>>();
  const std::vector<float> logits = model.Run(0, tokens, chunks);
  for (const auto& [key, expected] : fixture.at("positions").items()) {
    const float* row = logits.data() + std::stol(key) * config->vocab_size;
    for (size_t i = 0; i < expected.size(); ++i) {
      ASSERT_NEAR(row[i], expected[i].get<double>(), kTolerance)
          << "position " << key << ", token " << i;
    }
  }
}

TEST(AnyConfig, GivesTheLogitsOfAnIndependentProgram) {
  std::ifstream file("src/model/testdata/random_configs.json");
  const nlohmann::json fixtures = nlohmann::json::parse(file);
  ASSERT_FALSE(fixtures.empty());
  for (const nlohmann::json& fixture : fixtures) {
    SCOPED_TRACE(fixture.at("config").dump());
    ExpectLogits(fixture, {512});
    ExpectLogits(fixture, {5, 31, 1});
  }
}

void ExpectDrafts(const nlohmann::json& fixture, size_t chunk) {
  auto config = ParseConfig(fixture.at("config").dump());
  ASSERT_TRUE(config.ok()) << config.status();
  const bool dspark = !fixture.at("confidence").is_null();
  config->drafter = dspark ? DrafterKind::kDspark : DrafterKind::kMtp;
  config->num_draft_blocks = fixture.at("blocks");
  const auto tokens = fixture.at("tokens").get<std::vector<int32_t>>();
  const auto num_drafts = static_cast<int32_t>(fixture.at("drafts").size());
  testing::TestModel model(*config, testing::MakeWeights(*config, testing::Storage::kF32, true),
                           {.lookahead = num_drafts});
  testing::TestModel::Proposal proposal;
  for (size_t begin = 0; begin + 1 < tokens.size(); begin += chunk) {
    const size_t count = std::min(chunk, tokens.size() - 1 - begin);
    model.Step({{0, static_cast<int64_t>(begin), std::span(tokens).subspan(begin, count)}});
    const bool last = begin + count + 1 == tokens.size();
    const DraftRows rows = {0, static_cast<int32_t>(count), tokens[begin + count],
                            last ? num_drafts : 0};
    proposal = model.Propose({&rows, 1});
  }
  EXPECT_EQ(proposal.drafts.tokens, fixture.at("drafts").get<std::vector<int32_t>>());
  const auto width = static_cast<size_t>(config->vocab_size);
  for (size_t i = 0; i < proposal.logits.size(); ++i) {
    ASSERT_NEAR(proposal.logits[i], fixture.at("logits")[i / width][i % width].get<double>(),
                kTolerance)
        << "draft " << i / width << ", token " << i % width;
  }
  if (!dspark) return;
  for (size_t i = 0; i < proposal.drafts.confidence.size(); ++i) {
    EXPECT_NEAR(proposal.drafts.confidence[i], fixture.at("confidence")[i].get<double>(),
                kTolerance);
  }
}

TEST(AnyConfig, GivesTheDraftsOfAnIndependentProgram) {
  std::ifstream file("src/model/testdata/random_drafters.json");
  const nlohmann::json fixtures = nlohmann::json::parse(file);
  ASSERT_FALSE(fixtures.empty());
  for (const nlohmann::json& fixture : fixtures) {
    SCOPED_TRACE(fixture.at("config").dump());
    for (const size_t chunk : {512, 7, 1}) ExpectDrafts(fixture, chunk);
  }
}

}  // namespace
}  // namespace fulgur::model

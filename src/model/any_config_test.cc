// Nothing is a special case of one config: sizes, layer orders and constants of all kinds give the
// logits of an independent program.
#include <gtest/gtest.h>

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

}  // namespace
}  // namespace fulgur::model

// The drafters in the box draft what they drafted in PyTorch: the same answers, and the same number
// of drafts accepted in every verification (greedy). Written by tools/demo_model/acceptance.py.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "model/checkpoint.h"
#include "model/drafter_source.h"
#include "model/testing/test_model.h"
#include "model/weight_loader.h"

namespace fulgur::model {
namespace {

using testing::TestModel;
using testing::TestModelOptions;

constexpr int64_t kMostDrafts = 5;

struct Drafting {
  std::string golden;
  std::string main;
  std::string drafter;
};

std::unique_ptr<TestModel> Load(const Drafting& drafting, Precision precision) {
  const auto main = Checkpoint::Open(drafting.main);
  const auto drafter = Checkpoint::Open(drafting.drafter);
  EXPECT_TRUE(main.ok() && drafter.ok()) << main.status() << drafter.status();
  const auto config = UseDrafter(main->config(), *drafter);
  EXPECT_TRUE(config.ok()) << config.status();
  auto weights = LoadWeights(*main, {.precision = precision, .drafter = &*drafter});
  EXPECT_TRUE(weights.ok()) << weights.status();
  TestModelOptions options;
  options.precision = precision;
  options.ops = kernels::OpChoice::kAuto;
  options.max_sequences = 1;
  options.lookahead = kMostDrafts;
  return std::make_unique<TestModel>(*config, *std::move(weights), options);
}

nlohmann::json Cases(const Drafting& drafting) {
  std::ifstream file(drafting.golden);
  return nlohmann::json::parse(file).at("cases");
}

struct Said {
  std::vector<int32_t> answer;
  std::vector<int64_t> lengths;  // tokens gained in each verification
};

// One greedy answer to a prompt, with a fixed number of drafts in every step.
class Speaker {
 public:
  Speaker(TestModel& model, int32_t num_drafts) : model_(model), num_drafts_(num_drafts) {}

  Said Answer(const std::vector<int32_t>& prompt, size_t length) {
    const std::vector<float> logits = model_.Step({{0, 0, prompt}});
    position_ = static_cast<int64_t>(prompt.size());
    said_.answer = {Best(logits, prompt.size() - 1)};
    Draft(static_cast<int32_t>(prompt.size()));
    while (said_.answer.size() < length) Verify(length);
    return said_;
  }

 private:
  int32_t Best(const std::vector<float>& logits, size_t row) const {
    const auto width = static_cast<size_t>(model_.vocab_size());
    const auto values = std::span(logits).subspan(row * width, width);
    return static_cast<int32_t>(std::max_element(values.begin(), values.end()) - values.begin());
  }

  void Draft(int32_t num_rows) {
    const DraftRows rows = {.sequence = 0,
                            .num_accepted = num_rows,
                            .next_token = said_.answer.back(),
                            .num_drafts = num_drafts_};
    drafts_ = model_.Propose({&rows, 1}).drafts.tokens;
  }

  // Runs the last token and the drafts, and keeps what the model says itself.
  void Verify(size_t length) {
    std::vector<int32_t> tokens = {said_.answer.back()};
    tokens.insert(tokens.end(), drafts_.begin(), drafts_.end());
    const std::vector<float> logits = model_.Step({{0, position_, tokens}});
    int32_t rows = 0;
    while (true) {
      said_.answer.push_back(Best(logits, static_cast<size_t>(rows++)));
      const auto next = static_cast<size_t>(rows);
      if (said_.answer.size() == length || next == tokens.size()) break;
      if (tokens[next] != said_.answer.back()) break;
    }
    said_.lengths.push_back(rows);
    position_ += rows;
    Draft(rows);
  }

  TestModel& model_;
  const int32_t num_drafts_;
  int64_t position_ = 0;
  std::vector<int32_t> drafts_;
  Said said_;
};

void ExpectGoldenAnswers(const Drafting& drafting) {
  const auto model = Load(drafting, Precision::kReference);
  for (const nlohmann::json& c : Cases(drafting)) {
    for (const auto& [num_drafts, lengths] : c.at("lengths").items()) {
      SCOPED_TRACE(c.at("kind").get<std::string>() + ", " + num_drafts + " drafts");
      const auto expected = c.at("answer").get<std::vector<int32_t>>();
      Speaker speaker(*model, std::stoi(num_drafts));
      const Said said = speaker.Answer(c.at("prompt"), expected.size());
      EXPECT_EQ(said.answer, expected);
      EXPECT_EQ(said.lengths, lengths.get<std::vector<int64_t>>());
    }
  }
}

// Rounded activations may move a few drafts, not their share.
void ExpectNativeAcceptsAsMany(const Drafting& drafting) {
  const auto model = Load(drafting, Precision::kNative);
  size_t steps = 0;
  size_t expected_steps = 0;
  for (const nlohmann::json& c : Cases(drafting)) {
    const auto& [num_drafts, lengths] = *c.at("lengths").items().begin();
    Speaker speaker(*model, std::stoi(num_drafts));
    steps += speaker.Answer(c.at("prompt"), c.at("answer").size()).lengths.size();
    expected_steps += lengths.size();
  }
  EXPECT_NEAR(static_cast<double>(steps), static_cast<double>(expected_steps),
              0.05 * static_cast<double>(expected_steps));
}

const Drafting kDspark = {"tests/data/demo_dspark_golden.json", "models/demo", "models/demo"};
const Drafting kMtp = {"tests/data/demo_mtp_golden.json", "models/demo", "models/demo-mtp"};

TEST(DemoDspark, AcceptsWhatPyTorchAccepts) { ExpectGoldenAnswers(kDspark); }

TEST(DemoDspark, NativePrecisionAcceptsAsMany) { ExpectNativeAcceptsAsMany(kDspark); }

TEST(DemoMtp, AcceptsWhatPyTorchAccepts) { ExpectGoldenAnswers(kMtp); }

TEST(DemoMtp, NativePrecisionAcceptsAsMany) { ExpectNativeAcceptsAsMany(kMtp); }

// The trunk's own folder may be another one than the drafter's.
TEST(DemoDspark, DraftsForTheBf16Copy) {
  ExpectNativeAcceptsAsMany({kDspark.golden, "models/demo-bf16", "models/demo"});
}

}  // namespace
}  // namespace fulgur::model

#include "cli/speculative_config.h"

#include <gmock/gmock.h>

#include <string>
#include <vector>

#include "cli/flag_parser.h"
#include "cli/serve_flags.h"
#include "cli/words.h"

namespace fulgur::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

using Words = std::vector<std::string>;

absl::StatusOr<SpeculativeConfig> Read(Words words) {
  words.insert(words.begin(), "m");
  const auto command = ParseCommand(ServeFlags(), words);
  if (!command.ok()) return command.status();
  return ReadSpeculativeConfig(command->values);
}

SpeculativeConfig MustRead(const Words& words) {
  auto config = Read(words);
  EXPECT_TRUE(config.ok()) << config.status();
  return config.ok() ? *std::move(config) : SpeculativeConfig{};
}

TEST(SpeculativeConfig, IsOffUnlessAskedFor) {
  EXPECT_FALSE(MustRead({}).enabled);
  EXPECT_FALSE(MustRead({"--speculative-config", "{}"}).enabled);
  EXPECT_FALSE(MustRead({"--speculative-config", R"({"method": "none"})"}).enabled);
  EXPECT_FALSE(MustRead({"--spec-method", "none", "--spec-tokens", "5"}).enabled);
  EXPECT_FALSE(MustRead({"--spec-tokens", "0"}).enabled);
}

TEST(SpeculativeConfig, ReadsThePublishedForm) {
  const auto config =
      MustRead({"--speculative-config",
                R"({"method": "dspark", "num_speculative_tokens": 7, "enforce_eager": true})"});
  EXPECT_TRUE(config.enabled);
  EXPECT_EQ(config.method, model::DrafterKind::kDspark);
  EXPECT_EQ(config.num_tokens, 7);
  EXPECT_TRUE(config.adaptive);
  EXPECT_EQ(config.verification, sample::VerifyMethod::kExactMatch);
  EXPECT_THAT(config.notes, IsEmpty());
}

TEST(SpeculativeConfig, ReadsDottedAndShortForms) {
  const auto dotted = MustRead(
      {"--speculative-config.method", "mtp", "--speculative-config.num_speculative_tokens", "2"});
  EXPECT_EQ(dotted.method, model::DrafterKind::kMtp);
  EXPECT_EQ(dotted.num_tokens, 2);
  const auto brief =
      MustRead({"--spec-method", "mtp", "--spec-model", "drafter", "--spec-tokens", "3"});
  EXPECT_EQ(brief.method, model::DrafterKind::kMtp);
  EXPECT_EQ(brief.model, "drafter");
  EXPECT_EQ(brief.num_tokens, 3);
  const auto detected = MustRead({"--spec-tokens", "3"});
  EXPECT_TRUE(detected.enabled);
  EXPECT_EQ(detected.method, std::nullopt);
}

TEST(SpeculativeConfig, ReadsVerification) {
  const auto with = [](const std::string& text) {
    return MustRead({"--speculative-config", text});
  };
  constexpr auto kRejection = sample::VerifyMethod::kRejection;
  EXPECT_EQ(with(R"({"verify_method": "rejection"})").verification, kRejection);
  EXPECT_EQ(with(R"({"rejection_sample_method": "standard"})").verification, kRejection);
  EXPECT_FALSE(with(R"({"adaptive": false})").adaptive);
  EXPECT_FALSE(with(R"({"enable_adaptive_verification": false})").adaptive);
  auto synthetic =
      with(R"({"rejection_sample_method": "synthetic", "synthetic_acceptance_length": 3.4})");
  EXPECT_FALSE(synthetic.adaptive);
  const auto options = ResolveSpeculation(synthetic, model::DrafterKind::kDspark, 5);
  ASSERT_EQ(options.synthetic_rates.size(), 5U);
  EXPECT_DOUBLE_EQ(options.synthetic_rates[1], 1.0);
  EXPECT_NEAR(options.synthetic_rates[2], 0.4, 1e-9);
  EXPECT_DOUBLE_EQ(options.synthetic_rates[3], 0.0);
}

struct Mistake {
  Words words;
  std::string sentence;
};

class SpeculativeMistakeTest : public ::testing::TestWithParam<Mistake> {};

TEST_P(SpeculativeMistakeTest, IsExplained) {
  const auto config = Read(GetParam().words);
  ASSERT_FALSE(config.ok());
  EXPECT_THAT(Message(config.status()), HasSubstr(GetParam().sentence));
}

Mistake InConfig(const char* text, const char* sentence) {
  return {{"--speculative-config", text}, sentence};
}

INSTANTIATE_TEST_SUITE_P(
    Values, SpeculativeMistakeTest,
    ::testing::Values(
        InConfig(R"({"method": "eagle3"})", "the method \"eagle3\" is not known here"),
        InConfig(R"({"method": 3})", "method must be a text"),
        InConfig(R"({"num_speculative_tokens": 0})", "must be a positive integer, not 0"),
        InConfig(R"({"num_speculative_tokens": 2.5})", "must be a positive integer, not 2.5"),
        InConfig(R"({"num_speculative_token": 2})", "did you mean 'num_speculative_tokens'?"),
        InConfig(R"({"adaptive": "yes"})", "adaptive must be a bool"),
        InConfig(R"({"adaptive": true, "enable_adaptive_verification": false})", "differ"),
        InConfig(R"({"verify_method": "fast"})", "must be one of exact, rejection"),
        InConfig(R"({"rejection_sample_method": "block"})", "is not offered"),
        InConfig(R"({"rejection_sample_method": "fly"})", "changes what is said"),
        InConfig(R"({"verify_method": "exact", "rejection_sample_method": "standard"})",
                 "exclude each other"),
        InConfig(R"({"rejection_sample_method": "synthetic"})", "needs synthetic_acceptance"),
        InConfig(R"({"synthetic_acceptance_length": 2})", "is for benchmarks"),
        InConfig(R"({"rejection_sample_method": "synthetic", "synthetic_acceptance_length": 0.5})",
                 "1 or more"),
        InConfig(
            R"({"rejection_sample_method": "synthetic", "synthetic_acceptance_rates": [0.5, 0.6]})",
            "from 1 down to 0"),
        InConfig(R"({"rejection_sample_method": "synthetic", "synthetic_acceptance_length": 2,
                     "adaptive": true})",
                 "exclude each other"),
        InConfig(R"({"draft_tensor_parallel_size": 2})", "as there is one worker"),
        InConfig(R"({"enforce_eager": "true"})", "enforce_eager must be a bool"),
        InConfig(R"({"model": 5})", "model must be the folder"),
        Mistake{{"--speculative-config", R"({"method": "mtp"})", "--spec-method", "dspark"},
                "but --spec-method says \"dspark\"; drop one"},
        Mistake{{"--speculative-config", R"({"num_speculative_tokens": 2})", "--spec-tokens", "3"},
                "num_speculative_tokens is 2, but --spec-tokens says 3"}));

TEST(ResolveSpeculation, TakesWhatTheDrafterWasTrainedFor) {
  SpeculativeConfig config;
  EXPECT_EQ(ResolveSpeculation(config, model::DrafterKind::kDspark, 5).num_drafts, 5);
  EXPECT_EQ(ResolveSpeculation(config, model::DrafterKind::kMtp, 1).num_drafts, 1);
  EXPECT_THAT(config.notes, IsEmpty());
  config.num_tokens = 3;
  EXPECT_EQ(ResolveSpeculation(config, model::DrafterKind::kDspark, 5).num_drafts, 3);
  EXPECT_THAT(config.notes, IsEmpty());
}

TEST(ResolveSpeculation, CutsABlockToItsWidthAndSaysSo) {
  SpeculativeConfig config;
  config.num_tokens = 7;
  EXPECT_EQ(ResolveSpeculation(config, model::DrafterKind::kDspark, 5).num_drafts, 5);
  EXPECT_THAT(config.notes, ElementsAre(HasSubstr("num_speculative_tokens 7 becomes 5")));
}

TEST(ResolveSpeculation, WarnsOfManyMtpDrafts) {
  SpeculativeConfig config;
  config.num_tokens = 7;
  EXPECT_EQ(ResolveSpeculation(config, model::DrafterKind::kMtp, 1).num_drafts, 7);
  EXPECT_THAT(config.notes, ElementsAre(HasSubstr("few of 7 will stand")));
}

TEST(DescribeSpeculation, IsOneLine) {
  EXPECT_EQ(DescribeSpeculation({.num_drafts = 5}, model::DrafterKind::kDspark),
            "DSpark, up to 5 drafts per step, verified by exact match (answers are unchanged)");
}

}  // namespace
}  // namespace fulgur::cli

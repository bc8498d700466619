#include "cli/plan_options.h"

#include <gmock/gmock.h>

#include "cli/flag_parser.h"
#include "cli/plan_text.h"

namespace fulgur::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const std::string kFlash = "src/plan/testdata/deepseek_v4_flash";

absl::StatusOr<PlanOptions> Parse(const std::vector<std::string>& args) {
  const auto command = ParseCommand(PlanFlags(), args);
  if (!command.ok()) return command.status();
  base::Machine machine;
  machine.usable_cores = 3;
  return BuildPlanOptions(command->values, command->positionals, machine);
}

TEST(PlanOptions, TakesCountsWithUnits) {
  const auto options = Parse({kFlash, "--users", "1,2k", "--contexts", "4K,1M"});
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_THAT(options->users, ElementsAre(1, 2000));
  EXPECT_THAT(options->contexts, ElementsAre(4096, 1 << 20));
  EXPECT_EQ(options->machine, "this");
  EXPECT_EQ(options->threads, 3);
}

TEST(PlanOptions, SaysWhatIsWrong) {
  const std::pair<std::vector<std::string>, std::string> mistakes[] = {
      {{}, "give the folder of a checkpoint"},
      {{kFlash, "more"}, "unexpected argument 'more'"},
      {{kFlash, "--users", "0"}, "--users '0' is not accepted; write numbers from 1 to 65536"},
      {{kFlash, "--users", "1,x"}, "--users '1,x' is not accepted"},
      {{kFlash, "--contexts", ","}, "--contexts is empty"},
      {{kFlash, "--machine", "m.yaml", "--threads", "2"}, "a file names its cores"},
      {{kFlash, "--machne", "this"}, "did you mean --machine?"},
  };
  for (const auto& [args, sentence] : mistakes) {
    const auto options = Parse(args);
    ASSERT_FALSE(options.ok()) << sentence;
    EXPECT_THAT(std::string(options.status().message()), HasSubstr(sentence));
  }
}

TEST(PlanOptions, ReadsAConfigWithoutWeights) {
  for (const std::string& path : {kFlash, kFlash + "/config.json"}) {
    auto options = Parse({path});
    const auto shape = ReadModelShape(*options);
    ASSERT_TRUE(shape.ok()) << shape.status();
    EXPECT_THAT(options->contexts, ElementsAre(4096, 131072, 1048576));
  }
  auto options = Parse({kFlash, "--contexts", "2M"});
  EXPECT_THAT(std::string(ReadModelShape(*options).status().message()),
              HasSubstr("--contexts 2097152 is above what the model was made for"));
  options = Parse({"/nowhere"});
  EXPECT_THAT(std::string(ReadModelShape(*options).status().message()),
              HasSubstr("the model folder /nowhere does not exist"));
}

PlanText PlanFor(const std::string& machine) {
  auto options = Parse({kFlash, "--users", "1,16", "--stages"});
  const auto shape = ReadModelShape(*options);
  return DescribePlan(*options, *shape, *plan::ParseMachine(machine, "test"));
}

TEST(PlanText, SaysWhatFits) {
  const PlanText plan = PlanFor("cores: 48\nmemory_gb: 256\nread_gbps: 300\n");
  EXPECT_TRUE(plan.fits);
  EXPECT_THAT(plan.text, HasSubstr("weights: 15"));
  EXPECT_THAT(plan.text, HasSubstr("fits: of 256.00 GB"));
  EXPECT_THAT(plan.text, HasSubstr(" bytes per token, "));
  EXPECT_THAT(plan.text, HasSubstr("restart point: "));
  EXPECT_THAT(plan.text, HasSubstr("16 users"));
  EXPECT_THAT(plan.text, HasSubstr("128K"));
  EXPECT_THAT(plan.text, HasSubstr("experts"));
}

TEST(PlanText, SaysWhatDoesNot) {
  const PlanText plan = PlanFor("cores: 48\nmemory_gb: 128\nread_gbps: 300\n");
  EXPECT_FALSE(plan.fits);
  EXPECT_THAT(plan.text, HasSubstr("does not fit: needs 15"));
  EXPECT_THAT(plan.text, HasSubstr("has 128.00 GB"));
  const PlanText tight = PlanFor("cores: 48\nmemory_gb: 192\nread_gbps: 300\n");
  EXPECT_TRUE(tight.fits);
  EXPECT_THAT(tight.text, HasSubstr(" *"));  // 16 users of a million tokens each
}

}  // namespace
}  // namespace fulgur::cli

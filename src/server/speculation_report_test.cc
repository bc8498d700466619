#include "server/speculation_report.h"

#include <gmock/gmock.h>

#include <string>

namespace fulgur::server {
namespace {

using engine::SpeculationStats;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

SpeculationStats Example() {
  SpeculationStats stats;
  stats.method = SpeculationStats::Method::kDspark;
  stats.adaptive = true;
  stats.num_drafts = 3;
  stats.mode = SpeculationStats::Mode::kOn;
  stats.gain = 1.43;
  stats.rounds = 100;
  stats.verified_tokens = 250;
  stats.accepted_tokens = 180;
  stats.verified_per_slot = {100, 100, 50};
  stats.accepted_per_slot = {90, 70, 20};
  stats.steps = {5, 90, 3};
  stats.predicted_forward_seconds = 2.0;
  stats.forward_seconds = 2.1;
  return stats;
}

std::string Exposed(const SpeculationStats& stats) {
  Exposition out(0);
  WriteSpeculation(stats, "engine=\"0\"", &out);
  return out.Take();
}

TEST(WriteSpeculation, HasTheNamesThatDashboardsKnow) {
  const std::string text = Exposed(Example());
  EXPECT_THAT(text, HasSubstr("vllm:spec_decode_num_drafts_total{engine=\"0\"} 100"));
  EXPECT_THAT(text, HasSubstr("vllm:spec_decode_num_draft_tokens_total{engine=\"0\"} 250"));
  EXPECT_THAT(text, HasSubstr("vllm:spec_decode_num_accepted_tokens_total{engine=\"0\"} 180"));
  EXPECT_THAT(text, HasSubstr("vllm:spec_decode_num_accepted_tokens_per_pos_total{engine=\"0\","
                              "position=\"2\"} 20"));
  EXPECT_THAT(text, Not(HasSubstr("position=\"3\"")));
}

TEST(WriteSpeculation, SaysWhatWasDecided) {
  const std::string text = Exposed(Example());
  EXPECT_THAT(text, HasSubstr("fulgur:spec_mode{engine=\"0\",mode=\"on\"} 1"));
  EXPECT_THAT(text, HasSubstr("fulgur:spec_mode{engine=\"0\",mode=\"off\"} 0"));
  EXPECT_THAT(text, HasSubstr("fulgur:spec_steps_total{engine=\"0\",mode=\"probe\"} 3"));
  EXPECT_THAT(text, HasSubstr("fulgur:spec_predicted_gain{engine=\"0\"} 1.43"));
}

TEST(WriteSpeculation, IsSilentWithoutADrafter) { EXPECT_THAT(Exposed({}), IsEmpty()); }

TEST(DescribeSpeculation, SaysWhy) {
  EXPECT_EQ(DescribeSpeculation({}, Example()),
            "speculation is on: drafts promise 1.43 times the tokens per second of decoding "
            "without; 180 of 250 verified drafts stood (90 70 40 % by position), 2.80 tokens per "
            "round; steps took 1.05 times what was predicted");
  SpeculationStats off = Example();
  off.mode = SpeculationStats::Mode::kOff;
  off.gain = 0.8;
  EXPECT_EQ(DescribeSpeculation(off, off),
            "speculation is off: drafts promise 0.80 times the tokens per second of decoding "
            "without; none was verified");
  off.adaptive = false;
  EXPECT_THAT(DescribeSpeculation({}, off), HasSubstr("speculation is fixed at 3 drafts; 180 of"));
}

TEST(SpeculationLog, SpeaksOnceAMinuteAndSoonAfterASwitch) {
  SpeculationLog log;
  absl::Time now = absl::UnixEpoch();
  SpeculationStats stats = Example();
  EXPECT_FALSE(log.LineDue({}, now).has_value());
  EXPECT_TRUE(log.LineDue(stats, now).has_value());
  stats.steps[1] += 10;
  EXPECT_FALSE(log.LineDue(stats, now + absl::Seconds(30)).has_value());
  stats.mode = SpeculationStats::Mode::kOff;
  EXPECT_TRUE(log.LineDue(stats, now + absl::Seconds(31)).has_value());
  stats.steps[0] += 10;
  EXPECT_FALSE(log.LineDue(stats, now + absl::Seconds(60)).has_value());
  EXPECT_TRUE(log.LineDue(stats, now + absl::Seconds(92)).has_value());
  EXPECT_FALSE(log.LineDue(stats, now + absl::Hours(1)).has_value());  // nothing happened
}

}  // namespace
}  // namespace fulgur::server

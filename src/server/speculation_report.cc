#include "server/speculation_report.h"

#include <fmt/format.h>

#include <array>
#include <cstdint>

namespace fulgur::server {
namespace {

using engine::SpeculationStats;

constexpr std::array<std::string_view, 3> kModeNames = {"off", "on", "probe"};
constexpr absl::Duration kRegularly = absl::Minutes(1);
constexpr absl::Duration kAfterSwitch = absl::Seconds(10);

std::string Position(std::string_view labels, int32_t slot) {
  return JoinLabels(labels, MetricLabels({{"position", std::to_string(slot)}}));
}

void WriteUpstreamSeries(const SpeculationStats& stats, std::string_view labels, Exposition* out) {
  const auto counter = [&](const char* name, const char* help, int64_t value) {
    out->Counter(name, help, labels, static_cast<double>(value));
  };
  counter("vllm:spec_decode_num_drafts", "Rounds: drafts of one request verified in a step.",
          stats.rounds);
  counter("vllm:spec_decode_num_draft_tokens", "Drafts that were verified.", stats.verified_tokens);
  counter("vllm:spec_decode_num_accepted_tokens", "Drafts that stood.", stats.accepted_tokens);
  out->Counter("vllm:spec_decode_num_accepted_tokens_per_pos", "Drafts that stood, by position.");
  for (int32_t slot = 0; slot < stats.num_drafts; ++slot) {
    out->Value(Position(labels, slot),
               static_cast<double>(stats.accepted_per_slot[static_cast<size_t>(slot)]));
  }
}

void WriteDecisions(const SpeculationStats& stats, std::string_view labels, Exposition* out) {
  out->Gauge("fulgur:spec_mode", "1 for what the latest step did: plain, with drafts, or a probe.");
  for (size_t mode = 0; mode < kModeNames.size(); ++mode) {
    out->Value(JoinLabels(labels, MetricLabels({{"mode", kModeNames[mode]}})),
               static_cast<size_t>(stats.mode) == mode ? 1 : 0);
  }
  out->Gauge("fulgur:spec_predicted_gain",
             "Tokens per time that drafts promise, relative to decoding without.", labels,
             stats.gain);
  out->Counter("fulgur:spec_steps", "Steps that decoded, by mode.");
  for (size_t mode = 0; mode < kModeNames.size(); ++mode) {
    out->Value(JoinLabels(labels, MetricLabels({{"mode", kModeNames[mode]}})),
               static_cast<double>(stats.steps[mode]));
  }
  const auto counter = [&](const char* name, const char* help, double value) {
    out->Counter(name, help, labels, value);
  };
  counter("fulgur:spec_proposed_tokens", "Drafts that were made.",
          static_cast<double>(stats.proposed_tokens));
  counter("fulgur:spec_planned_tokens", "Drafts worth verifying, by what earlier steps showed.",
          static_cast<double>(stats.planned_tokens));
  counter("fulgur:spec_discarded_tokens", "Drafts verified behind the end of an answer.",
          static_cast<double>(stats.discarded_tokens));
  counter("fulgur:spec_undrafted_rounds", "Requests that decoded a step without drafts at hand.",
          static_cast<double>(stats.undrafted_rounds));
}

void WriteAccuracy(const SpeculationStats& stats, std::string_view labels, Exposition* out) {
  const auto counter = [&](const char* name, const char* help, double value) {
    out->Counter(name, help, labels, value);
  };
  counter("fulgur:spec_predicted_accepted_tokens",
          "Drafts that were expected to stand; compare with spec_decode_num_accepted_tokens.",
          stats.predicted_accepted);
  counter("fulgur:spec_forward_seconds", "Time of forward passes.", stats.forward_seconds);
  counter("fulgur:spec_predicted_forward_seconds", "The same as the cost table predicted it.",
          stats.predicted_forward_seconds);
  counter("fulgur:spec_draft_seconds", "Time of drafting.", stats.draft_seconds);
  out->Counter("fulgur:spec_verified_tokens_per_pos", "Drafts that were verified, by position.");
  for (int32_t slot = 0; slot < stats.num_drafts; ++slot) {
    out->Value(Position(labels, slot),
               static_cast<double>(stats.verified_per_slot[static_cast<size_t>(slot)]));
  }
  out->Gauge("fulgur:spec_calibration_error",
             "Distance between predicted and observed acceptance of late, by position.");
  for (int32_t slot = 0; slot < stats.num_drafts; ++slot) {
    out->Value(Position(labels, slot), stats.calibration_error[static_cast<size_t>(slot)]);
  }
}

double Ratio(double part, double whole) { return whole > 0.0 ? part / whole : 0.0; }

// "92 84 75": per cent of the verified drafts that stood, by position.
std::string StandingByPosition(const SpeculationStats& before, const SpeculationStats& now) {
  std::string text;
  for (size_t slot = 0; slot < static_cast<size_t>(now.num_drafts); ++slot) {
    const auto verified = now.verified_per_slot[slot] - before.verified_per_slot[slot];
    const auto stood = now.accepted_per_slot[slot] - before.accepted_per_slot[slot];
    if (verified == 0) break;
    const double share = 100.0 * Ratio(static_cast<double>(stood), static_cast<double>(verified));
    text += fmt::format("{}{:.0f}", text.empty() ? "" : " ", share);
  }
  return text;
}

}  // namespace

void WriteSpeculation(const SpeculationStats& stats, std::string_view labels, Exposition* out) {
  if (stats.method == SpeculationStats::Method::kNone) return;
  WriteUpstreamSeries(stats, labels, out);
  WriteDecisions(stats, labels, out);
  WriteAccuracy(stats, labels, out);
}

std::string DescribeSpeculation(const SpeculationStats& before, const SpeculationStats& now) {
  const bool off = now.mode == SpeculationStats::Mode::kOff;
  std::string line =
      now.adaptive ? fmt::format(
                         "speculation is {}: drafts promise {:.2f} times the tokens per second of "
                         "decoding without",
                         off ? "off" : "on", now.gain)
                   : fmt::format("speculation is fixed at {} drafts", now.num_drafts);
  const int64_t rounds = now.rounds - before.rounds;
  if (rounds == 0) return line + "; none was verified";
  const int64_t verified = now.verified_tokens - before.verified_tokens;
  const int64_t accepted = now.accepted_tokens - before.accepted_tokens;
  line +=
      fmt::format("; {} of {} verified drafts stood ({} % by position), {:.2f} tokens per round",
                  accepted, verified, StandingByPosition(before, now),
                  1.0 + Ratio(static_cast<double>(accepted), static_cast<double>(rounds)));
  const double predicted = now.predicted_forward_seconds - before.predicted_forward_seconds;
  if (predicted > 0.0) {
    line += fmt::format("; steps took {:.2f} times what was predicted",
                        (now.forward_seconds - before.forward_seconds) / predicted);
  }
  return line;
}

std::optional<std::string> SpeculationLog::LineDue(const SpeculationStats& stats, absl::Time now) {
  if (stats.method == SpeculationStats::Method::kNone) return std::nullopt;
  const auto decoded = [](const SpeculationStats& s) {
    return s.steps[0] + s.steps[1] + s.steps[2];
  };
  if (decoded(stats) == decoded(before_)) return std::nullopt;
  const bool is_on = stats.mode != SpeculationStats::Mode::kOff;
  const absl::Duration wait = is_on == was_on_ ? kRegularly : kAfterSwitch;
  if (now - last_ < wait) return std::nullopt;
  std::string line = DescribeSpeculation(before_, stats);
  before_ = stats;
  last_ = now;
  was_on_ = is_on;
  return line;
}

}  // namespace fulgur::server

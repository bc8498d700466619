// Rules on the numbers of a summary: they must agree with each other and with the plan.
#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <string>

#include "bench/results/aiperf_plan.h"
#include "bench/results/error_groups.h"
#include "bench/results/lint_rules.h"
#include "fmt/format.h"
#include "fmt/ranges.h"

namespace fulgur::bench {
namespace {

class Summary {
 public:
  Summary(const Result& result, std::vector<LintFinding>& into)
      : result_(result), metrics_(result.cell.metrics), into_(into) {}

  const MetricBlock* Find(const char* tag) const {
    const auto it = metrics_.find(tag);
    return it == metrics_.end() ? nullptr : &it->second;
  }
  std::optional<double> Avg(const char* tag) const {
    const MetricBlock* block = Find(tag);
    return block == nullptr ? std::nullopt : block->avg;
  }
  void Add(const char* rule, Severity severity, std::string text) const {
    into_.push_back({rule, severity, std::move(text)});
  }
  void Add(const char* rule, bool good, Severity otherwise, std::string text) const {
    Add(rule, good ? Severity::kPass : otherwise, std::move(text));
  }

  const Result& result_;
  const MetricMap& metrics_;
  std::vector<LintFinding>& into_;
};

bool Close(double a, double b, double relative) {
  return std::fabs(a - b) <= relative * std::max(std::fabs(a), std::fabs(b)) + 1e-12;
}

bool IsOpenLoop(const Result& result) {
  return std::any_of(result.plan.phases.begin(), result.plan.phases.end(),
                     [](const PlannedPhase& phase) {
                       return phase.name == "profiling" && phase.rate.has_value();
                     });
}

bool InOrder(const MetricBlock& block) {
  std::vector<double> ascending;
  if (block.min) ascending.push_back(*block.min);
  for (const auto& [q, value] : block.percentiles) ascending.push_back(value);
  if (block.max) ascending.push_back(*block.max);
  for (size_t i = 1; i < ascending.size(); ++i) {
    // Interpolation rounds in the last digits.
    if (ascending[i] < ascending[i - 1] - 1e-9 * std::fabs(ascending[i - 1])) return false;
  }
  return true;
}

void CheckBlocks(const Summary& summary) {
  std::vector<std::string> disordered, wrong_sums;
  for (const auto& [tag, block] : summary.metrics_) {
    if (!InOrder(block)) disordered.push_back(tag);
    if (block.avg && block.count && block.sum &&
        !Close(*block.avg * static_cast<double>(*block.count), *block.sum, 1e-6)) {
      wrong_sums.push_back(tag);
    }
  }
  summary.Add(
      "L1", disordered.empty(), Severity::kFail,
      disordered.empty()
          ? fmt::format("percentiles of {} metrics are in order", summary.metrics_.size())
          : fmt::format("percentiles fall where they must rise: {}", fmt::join(disordered, ", ")));
  summary.Add("L2", wrong_sums.empty(), Severity::kFail,
              wrong_sums.empty() ? "every sum is its mean times its count"
                                 : fmt::format("the sum is not the mean times the count: {}",
                                               fmt::join(wrong_sums, ", ")));
}

void CheckCounts(const Summary& summary) {
  const MetricBlock* latency = summary.Find("request_latency");
  const auto requests = summary.Avg("request_count");
  if (latency != nullptr && latency->count && requests) {
    const auto count = static_cast<double>(*latency->count);
    summary.Add("L3", count == *requests, Severity::kFail,
                fmt::format("{} latencies of {} requests", count, *requests));
  }
  const MetricBlock* lengths = summary.Find("output_sequence_length");
  const auto total = summary.Avg("total_osl");
  if (lengths != nullptr && lengths->sum && total) {
    const bool good = std::fabs(*lengths->sum - *total) <= 0.5 + 1e-6 * std::fabs(*total);
    summary.Add(
        "L4", good, Severity::kFail,
        fmt::format("output lengths add up to {:.1f}, total_osl is {:.1f}", *lengths->sum, *total));
  }
}

// The two spans that a rate may be over: releases of aiperf differ.
void CheckRates(const Summary& summary) {
  const auto duration = summary.Avg("benchmark_duration");
  const auto& window = summary.result_.window_s;
  if (duration && window && !Close(*duration, *window, 0.02)) {
    summary.Add(
        "L5", Severity::kWarn,
        fmt::format("the phase window is {:.3f} s and benchmark_duration {:.3f} s: rates of "
                    "files that divide by the other one cannot be compared with these",
                    *window, *duration));
  }
  const struct {
    const char* rate;
    const char* total;
  } kPairs[] = {{"output_token_throughput", "total_osl"}, {"request_throughput", "request_count"}};
  for (const auto& pair : kPairs) {
    const auto rate = summary.Avg(pair.rate);
    const auto total = summary.Avg(pair.total);
    if (!rate || !total || (!duration && !window)) continue;
    // Files with rounded numbers keep four decimals.
    const auto fits = [&](const std::optional<double>& span) {
      return span && std::fabs(*rate * *span - *total) <= 1e-5 * *total + 1e-4 * *span;
    };
    summary.Add("L5", fits(window) || fits(duration), Severity::kFail,
                fmt::format("{} of {:.4f} over {} is {} = {:.1f}", pair.rate, *rate,
                            fits(window) || !duration ? "the phase window" : "benchmark_duration",
                            pair.total, *total));
  }
}

void CheckPerUserRate(const Summary& summary) {
  const MetricBlock* rate = summary.Find("output_token_throughput_per_user");
  const MetricBlock* latency = summary.Find("inter_token_latency");
  if (rate == nullptr || latency == nullptr || !rate->avg || !latency->avg || *latency->avg <= 0) {
    return;
  }
  const double harmonic = 1000.0 / *latency->avg;
  const bool good = *rate->avg >= harmonic - std::max(0.05, 1e-4 * harmonic);
  const bool subset = rate->count && latency->count && *rate->count < *latency->count;
  summary.Add(
      "L6", good, subset ? Severity::kWarn : Severity::kFail,
      fmt::format(
          "the mean rate per user is {:.2f}, 1000 / mean inter-token latency {:.2f}{}", *rate->avg,
          harmonic,
          subset ? "; answers that came in one message have no rate and are left out" : ""));
  const auto weighted = summary.Avg("fulgur_per_user_token_weighted");
  if (weighted && !Close(*weighted, *rate->avg, 0.03) && *weighted < *rate->avg) {
    summary.Add("A1", Severity::kWarn,
                fmt::format("the mean over requests, {:.2f} tokens/s per user, overstates what a "
                            "token took: weighted by tokens it is {:.2f}",
                            *rate->avg, *weighted));
  }
}

void CheckConcurrency(const Summary& summary) {
  const auto& limit = summary.result_.cell.concurrency;
  if (!limit || IsOpenLoop(summary.result_)) return;
  const auto concurrency = static_cast<double>(*limit);
  if (const auto mean = summary.Avg("fulgur_mean_concurrency")) {
    summary.Add(
        "L7", *mean <= concurrency * 1.01, Severity::kFail,
        fmt::format("{:.2f} requests were under way on average, the limit is {}", *mean, *limit));
  }
  const auto weighted = summary.Avg("fulgur_per_user_token_weighted");
  const auto length = summary.Avg("output_sequence_length");
  const auto rate = summary.Avg("output_token_throughput");
  if (!weighted || !length || !rate || *length <= 1) return;
  const double most = concurrency * *weighted * *length / (*length - 1);
  summary.Add("L16", most >= 0.99 * *rate, Severity::kFail,
              fmt::format("{} users at {:.2f} tokens/s make at most {:.1f} tokens/s; the file says "
                          "{:.1f}",
                          *limit, *weighted, most, *rate));
}

void CheckErrors(const Summary& summary, const LintOptions& options) {
  const double failed = summary.Avg("error_request_count").value_or(0.0);
  const auto good = summary.Avg("request_count");
  if (!good && failed == 0) return;
  const double all = good.value_or(0.0) + failed;
  const double percent = all > 0 ? 100.0 * failed / all : 0.0;
  const Severity severity = percent > options.max_error_percent ? Severity::kFail
                            : failed > 0                        ? Severity::kWarn
                                                                : Severity::kPass;
  summary.Add("L9", severity,
              fmt::format("{} of {} requests failed ({:.1f} %)", failed, all, percent));
  if (good == 0.0) {
    summary.Add("L9", Severity::kFail, "no request ended well: there is nothing to measure");
  }
  const auto groups = GroupForPeople(summary.result_.cell.errors);
  if (groups.empty()) return;
  std::vector<std::string> texts;
  texts.reserve(groups.size());
  for (const ErrorGroup& group : groups) {
    texts.push_back(fmt::format("{} x {} ({})", group.count, CodeName(group), group.message));
  }
  summary.Add("L18", Severity::kPass, fmt::format("errors: {}", fmt::join(texts, "; ")));
}

void CheckLengths(const Summary& summary, const LintOptions& options) {
  if (const auto wrong = summary.Avg("osl_mismatch_count")) {
    summary.Add("L10", *wrong == 0, Severity::kWarn,
                fmt::format("{} answers are not as long as asked for", *wrong));
  }
  const RunPlan& plan = summary.result_.plan;
  const bool fixed =
      options.fixed_input_length ||
      (plan.sequence_distribution.empty() && plan.input_length && plan.input_length->stddev == 0);
  const MetricBlock* inputs = summary.Find("input_sequence_length");
  if (fixed && inputs != nullptr && inputs->std) {
    summary.Add(
        "L11", *inputs->std == 0, Severity::kWarn,
        fmt::format("prompts were to be equally long; their lengths spread by {:.2f} tokens",
                    *inputs->std));
  }
}

void CheckSize(const Summary& summary) {
  const auto requests = summary.Avg("request_count");
  const auto duration = summary.Avg("benchmark_duration");
  const auto& limit = summary.result_.cell.concurrency;
  if (!requests || !duration) return;
  std::vector<std::string> reasons;
  if (limit && *requests < 5.0 * static_cast<double>(*limit)) {
    reasons.push_back(
        fmt::format("{} requests are fewer than 5 per slot at concurrency {}", *requests, *limit));
  }
  if (*duration < 60) reasons.push_back(fmt::format("{:.1f} s are less than 60 s", *duration));
  summary.Add("L12", reasons.empty(), Severity::kWarn,
              reasons.empty() ? fmt::format("{} requests in {:.0f} s", *requests, *duration)
                              : fmt::format("short run: {}", fmt::join(reasons, ", ")));
}

void CheckState(const Summary& summary) {
  const Cell& cell = summary.result_.cell;
  const bool good = !cell.was_cancelled && cell.is_complete;
  summary.Add(
      "L14", good, Severity::kFail,
      good ? "the run was complete" : "the run was stopped before its end; what it has is a part");
}

// Acceptance by draft position, the first position first; empty if the file does not say.
std::vector<double> AcceptanceByPosition(const Summary& summary) {
  std::vector<double> rates;
  for (int position = 1;; ++position) {
    const std::string tag = fmt::format("fulgur_acceptance_rate_position_{}", position);
    const auto rate = summary.Avg(tag.c_str());
    if (!rate) return rates;
    rates.push_back(*rate);
  }
}

// Drafts of a step: as many as there are positions, else the mean number of drafts.
std::optional<double> DraftsPerStep(const Summary& summary, const std::vector<double>& rates) {
  if (!rates.empty()) return static_cast<double>(rates.size());
  const auto drafts = summary.Avg("total_draft_tokens");
  const auto steps = summary.Avg("total_spec_decode_steps");
  if (!drafts || !steps || *steps <= 0) return std::nullopt;
  return *drafts / *steps;
}

// k draft tokens and one of the target's own are the most that a step can give. A draft counts only
// if all before it were accepted, so rates fall with the position, and they add up to the length.
void CheckAcceptance(const Summary& summary) {
  const auto rates = AcceptanceByPosition(summary);
  const bool falling = std::is_sorted(rates.rbegin(), rates.rend());
  const bool shares =
      std::all_of(rates.begin(), rates.end(), [](double rate) { return rate >= 0 && rate <= 1; });
  if (!falling || !shares) {
    summary.Add("L15", Severity::kFail,
                fmt::format("acceptance by position ({:.2f}) must fall from at most 1 to at least "
                            "0: the counters are of other steps than the drafts",
                            fmt::join(rates, ", ")));
    return;
  }
  const auto length = summary.Avg("spec_decode_acceptance_length");
  if (!length) return;
  const auto drafts = DraftsPerStep(summary, rates);
  constexpr double kRounding = 0.005;  // files keep two decimals
  const bool possible = *length >= 1.0 && (!drafts || *length <= *drafts + 1 + kRounding);
  if (!possible) {
    summary.Add(
        "L15", Severity::kFail,
        fmt::format(
            "acceptance length {:.2f} is not within 1 and {}", *length,
            drafts ? fmt::format("{:g}, the drafts of a step and the target's token", *drafts + 1)
                   : "the drafts of a step and the target's token"));
    return;
  }
  const double sum = std::accumulate(rates.begin(), rates.end(), 1.0);
  const bool adds_up = rates.empty() || std::fabs(sum - *length) <= 0.02 * *length;
  summary.Add("L15", adds_up, Severity::kWarn,
              adds_up ? fmt::format("acceptance length {:.2f}", *length)
                      : fmt::format("acceptance length {:.2f}, but the rates by position add up to "
                                    "{:.2f}: one of them counts the target's own token otherwise",
                                    *length, sum));
}

void CheckClocks(const Summary& summary) {
  std::vector<std::string> negative;
  for (const auto& [tag, block] : summary.metrics_) {
    if (block.unit == "ms" && block.min.value_or(0.0) < 0) negative.push_back(tag);
  }
  if (!negative.empty()) {
    summary.Add("T1", Severity::kFail,
                fmt::format("times below zero, so a clock jumped: {}", fmt::join(negative, ", ")));
  }
  const auto first = summary.Avg("time_to_first_token");
  const auto latency = summary.Avg("request_latency");
  if (first && latency && *first > *latency * (1 + 1e-9)) {
    summary.Add(
        "T1", Severity::kFail,
        fmt::format("the first token comes after {:.2f} ms, the last one after {:.2f} ms: a "
                    "unit is wrong, or the file is of two runs",
                    *first, *latency));
  }
}

// What is right, yet means something else than it seems.
void CheckMeaning(const Summary& summary) {
  const Result& result = summary.result_;
  const auto& environment = result.cell.environment;
  if (environment.contains("first_token")) {
    summary.Add("P3", Severity::kWarn,
                "this client takes a message with nothing but a role for the first token: time to "
                "first token is too small, inter-token latency too large");
  }
  if (environment.contains("rate_per_user")) {
    summary.Add("P1", Severity::kWarn,
                "the file has no mean rate per user; 1000 / mean inter-token latency stands in, "
                "which is never above it");
  }
  const auto itl = summary.Avg("inter_token_latency");
  const auto after = summary.Avg("fulgur_itl_after_first_chunk");
  if (itl && after && *after > *itl * 1.1) {
    summary.Add(
        "P2", Severity::kWarn,
        fmt::format("the first message carries several tokens: inter-token latency {:.2f} ms "
                    "is {:.2f} ms without crediting them",
                    *itl, *after));
  }
  const auto bundle = summary.Avg("fulgur_first_chunk_tokens");
  if (bundle && *bundle > 16) {
    summary.Add(
        "P6", Severity::kWarn,
        fmt::format("the first message carries {:.0f} tokens: something holds text back", *bundle));
  }
  const MetricBlock* first = summary.Find("time_to_first_token");
  const MetricBlock* lengths = summary.Find("output_sequence_length");
  if (result.cell.kind == ResultKind::kEvalscope && first != nullptr && first->min == 0.0 &&
      lengths != nullptr && lengths->min == 0.0) {
    summary.Add("P9", Severity::kWarn,
                "answers without content count as successes with a first token after 0 ms");
  }
  if (!result.plan.endpoint_type.empty() && !result.plan.streaming && first != nullptr) {
    summary.Add("P4", Severity::kWarn,
                "the answers were not streamed: the first token came with the last one");
  }
}

// Prompts always differ, since clients leave the chat template out; answers must not.
void CheckTokenCounts(const Summary& summary) {
  const MetricBlock* difference = summary.Find("usage_completion_tokens_diff_pct");
  if (difference == nullptr || !difference->percentiles.contains(90)) return;
  const double percent = difference->percentiles.at(90);
  summary.Add(
      "P13", percent <= 10.0, Severity::kWarn,
      fmt::format("client and server count the tokens of answers differently, by {:.1f} % at "
                  "90 % of them{}",
                  percent, percent > 10.0 ? ": rates rest on the wrong tokenizer" : ""));
}

void CheckClient(const Summary& summary) {
  const MetricBlock* lag = summary.Find("credit_to_start_latency");
  if (!IsOpenLoop(summary.result_) || lag == nullptr || !lag->percentiles.contains(99)) return;
  const double p99 = lag->percentiles.at(99);
  summary.Add("P17", p99 <= 5.0, Severity::kWarn,
              fmt::format("requests went out up to {:.2f} ms after their time (99 %)", p99));
}

}  // namespace

void LintSummary(const Result& result, const LintOptions& options, std::vector<LintFinding>& into) {
  const Summary summary(result, into);
  CheckBlocks(summary);
  CheckCounts(summary);
  CheckRates(summary);
  CheckPerUserRate(summary);
  CheckConcurrency(summary);
  CheckErrors(summary, options);
  CheckLengths(summary, options);
  if (result.cell.kind != ResultKind::kReference) {
    CheckSize(summary);
    CheckState(summary);
  }
  CheckAcceptance(summary);
  CheckClocks(summary);
  CheckMeaning(summary);
  CheckTokenCounts(summary);
  CheckClient(summary);
}

}  // namespace fulgur::bench

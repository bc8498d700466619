#include "bench/eval/accuracy.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "absl/strings/str_format.h"

namespace fulgur::bench {
namespace {

constexpr double kMaxTruncated = 0.02;
constexpr double kMaxUnparsed = 0.05;
constexpr double kMaxGuessed = 0.05;  // letters that no sure rule found
constexpr int kGuessTier = 4;

// What is known of each item: its answers' grades, in order of samples.
using GradesOfItems = std::vector<std::vector<const Grade*>>;

GradesOfItems GroupByItem(const EvalData& data, const std::vector<GradedAnswer>& answers) {
  GradesOfItems items(data.items.size());
  for (const GradedAnswer& graded : answers) items[graded.answer.item].push_back(&graded.grade);
  return items;
}

double ShareRight(const std::vector<const Grade*>& grades) {
  const auto right = std::count_if(grades.begin(), grades.end(),
                                   [](const Grade* grade) { return grade->correct; });
  return static_cast<double>(right) / static_cast<double>(grades.size());
}

// Whether the most frequent answer is right; the first of equally frequent ones counts.
bool MajorityIsRight(const std::vector<const Grade*>& grades) {
  std::map<std::string, int> votes;
  const Grade* best = nullptr;
  for (const Grade* grade : grades) {
    if (grade->parsed) ++votes[grade->answer];
  }
  for (const Grade* grade : grades) {
    if (!grade->parsed) continue;
    if (best == nullptr || votes[grade->answer] > votes[best->answer]) best = grade;
  }
  return best != nullptr && best->correct;
}

// Mean over items of the chance that k of their samples hold a right one. Items with fewer answers
// than k, as after an interruption, would need a guess and leave that k out.
std::map<int64_t, double> PassAt(const GradesOfItems& items, int64_t samples) {
  std::vector<int64_t> ks;
  for (int64_t k = 1; k < samples; k *= 2) ks.push_back(k);
  ks.push_back(samples);
  std::map<int64_t, double> pass;
  for (const int64_t k : ks) {
    double sum = 0.0;
    int64_t counted = 0;
    bool enough = true;
    for (const auto& grades : items) {
      if (grades.empty()) continue;
      const auto n = static_cast<int64_t>(grades.size());
      const auto right = std::count_if(grades.begin(), grades.end(),
                                       [](const Grade* grade) { return grade->correct; });
      enough = enough && n >= k;
      if (n >= k) sum += PassAtK(n, right, k);
      ++counted;
    }
    if (enough && counted > 0) pass[k] = sum / static_cast<double>(counted);
  }
  return pass;
}

void CountAnswers(const EvalData& data, const std::vector<GradedAnswer>& answers,
                  Accuracy& accuracy) {
  for (const auto& [answer, grade] : answers) {
    accuracy.failed += answer.error.empty() ? 0 : 1;
    accuracy.truncated += answer.finish_reason == "length" ? 1 : 0;
    accuracy.unparsed += answer.error.empty() && !grade.parsed ? 1 : 0;
    if (grade.parsed) ++accuracy.tiers[grade.tier];
    const std::string& subset = data.items[answer.item].subset;
    if (subset.empty()) continue;
    Score& score = accuracy.subsets[subset];
    ++score.total;
    score.right += grade.correct ? 1 : 0;
  }
}

void Warn(const EvalData& data, int64_t answers, Accuracy& accuracy) {
  const auto share = [answers](int64_t count) {
    return static_cast<double>(count) / static_cast<double>(std::max<int64_t>(answers, 1));
  };
  if (accuracy.failed > 0) {
    accuracy.warnings.push_back(
        absl::StrFormat("%d of %d requests failed and count as wrong", accuracy.failed, answers));
  }
  if (share(accuracy.truncated) > kMaxTruncated) {
    accuracy.warnings.push_back(
        absl::StrFormat("%d of %d answers were cut at the token limit; raise --max-tokens",
                        accuracy.truncated, answers));
  }
  if (share(accuracy.unparsed) > kMaxUnparsed) {
    accuracy.warnings.push_back(
        absl::StrFormat("no answer was found in %d of %d texts; look at them in items.jsonl",
                        accuracy.unparsed, answers));
  }
  const auto guessed = accuracy.tiers.find(kGuessTier);
  if (data.kind == AnswerKind::kLetter && guessed != accuracy.tiers.end() &&
      share(guessed->second) > kMaxGuessed) {
    accuracy.warnings.push_back(absl::StrFormat("%d of %d letters were only guessed from the text",
                                                guessed->second, answers));
  }
  if (accuracy.num_items < static_cast<int64_t>(data.items.size())) {
    accuracy.warnings.push_back(absl::StrFormat("only %d of %d questions were answered",
                                                accuracy.num_items, data.items.size()));
  }
}

}  // namespace

Accuracy Summarise(const EvalData& data, const std::vector<GradedAnswer>& answers) {
  Accuracy accuracy{.dataset = data.name};
  std::vector<double> means;
  int64_t majority = 0;
  const GradesOfItems items = GroupByItem(data, answers);
  for (const auto& grades : items) {
    if (grades.empty()) continue;
    means.push_back(ShareRight(grades));
    majority += MajorityIsRight(grades) ? 1 : 0;
    accuracy.samples = std::max<int64_t>(accuracy.samples, static_cast<int64_t>(grades.size()));
  }
  CountAnswers(data, answers, accuracy);
  accuracy.num_items = static_cast<int64_t>(means.size());
  Warn(data, static_cast<int64_t>(answers.size()), accuracy);
  if (means.empty()) return accuracy;
  const double sum = std::accumulate(means.begin(), means.end(), 0.0);
  const auto n = static_cast<double>(means.size());
  accuracy.score = sum / n;
  accuracy.standard_error = StandardError(means);
  if (accuracy.samples == 1) {
    accuracy.interval = WilsonInterval(std::llround(sum), accuracy.num_items);
  } else {
    const double half = 1.96 * accuracy.standard_error;
    accuracy.interval = {std::max(0.0, accuracy.score - half),
                         std::min(1.0, accuracy.score + half)};
    if (data.kind != AnswerKind::kCode) accuracy.majority = static_cast<double>(majority) / n;
    accuracy.pass_at = PassAt(items, accuracy.samples);
  }
  return accuracy;
}

absl::StatusOr<AccuracyDifference> CompareAnswers(const StoredAnswers& first,
                                                  const StoredAnswers& second) {
  using Rows = std::map<std::string, std::vector<const StoredAnswers::Row*>>;
  const auto group = [](const StoredAnswers& stored) {
    Rows rows;
    for (const StoredAnswers::Row& row : stored.rows) rows[row.id].push_back(&row);
    return rows;
  };
  const auto mean = [](const std::vector<const StoredAnswers::Row*>& rows) {
    const auto right =
        std::count_if(rows.begin(), rows.end(), [](auto* row) { return row->correct; });
    return static_cast<double>(right) / static_cast<double>(rows.size());
  };
  const Rows a = group(first);
  const Rows b = group(second);
  std::vector<double> scores_a, scores_b;
  PairedOutcome outcome;
  int64_t texts = 0;
  int64_t equal = 0;
  for (const auto& [id, rows] : a) {
    const auto other = b.find(id);
    if (other == b.end()) continue;
    scores_a.push_back(mean(rows));
    scores_b.push_back(mean(other->second));
    outcome.only_first += scores_a.back() > 0.5 && scores_b.back() <= 0.5 ? 1 : 0;
    outcome.only_second += scores_b.back() > 0.5 && scores_a.back() <= 0.5 ? 1 : 0;
    for (size_t i = 0; i < std::min(rows.size(), other->second.size()); ++i, ++texts) {
      equal += rows[i]->answer.text == other->second[i]->answer.text ? 1 : 0;
    }
  }
  if (scores_a.empty()) {
    return absl::InvalidArgumentError("the two evaluations have no question in common");
  }
  const auto n = static_cast<double>(scores_a.size());
  return AccuracyDifference{
      .items = static_cast<int64_t>(scores_a.size()),
      .first = std::accumulate(scores_a.begin(), scores_a.end(), 0.0) / n,
      .second = std::accumulate(scores_b.begin(), scores_b.end(), 0.0) / n,
      .interval = BootstrapDifference(scores_a, scores_b, 1),
      .p = McNemarP(outcome),
      .equal_texts = static_cast<double>(equal) / static_cast<double>(std::max<int64_t>(texts, 1))};
}

std::optional<PublishedScore> FindPublishedScore(std::string_view dataset) {
  static constexpr PublishedScore kScores[] = {
      {"gsm8k", 96.30, 2.0, "vllm-ascend, one Atlas A3"},
      {"gpqa", 88.17, 5.0, "vllm-ascend, one Atlas A3"},
      {"aime", 90.0, 10.0, "vllm-ascend's nightly AIME 2025 check"},
  };
  for (const PublishedScore& score : kScores) {
    if (score.dataset == dataset) return score;
  }
  return std::nullopt;
}

}  // namespace fulgur::bench

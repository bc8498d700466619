// From graded answers to one number that says how sure it is; the files of an evaluation; and the
// comparison of two of them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "bench/eval/ask.h"
#include "bench/eval/eval_item.h"
#include "bench/eval/grade.h"
#include "bench/eval/score_statistics.h"

namespace fulgur::bench {

struct GradedAnswer {
  Answer answer;
  Grade grade;
};

struct Score {
  int64_t right = 0;
  int64_t total = 0;
};

// Shares are of all answers; an answer without text (failed, cut while thinking) is wrong.
struct Accuracy {
  std::string model = {};
  std::string dataset = {};
  int64_t num_items = 0;
  int64_t samples = 1;
  double score = 0.0;  // mean over items of the mean over samples
  double standard_error = 0.0;
  Interval interval = {};                  // 95 %
  std::optional<double> majority = {};     // maj@k: the most frequent answer of each item's samples
  std::map<int64_t, double> pass_at = {};  // pass@k for k = 1, 2, 4 ... and all samples, if several
  int64_t failed = 0;                      // no answer at all
  int64_t truncated = 0;                   // finish_reason "length"
  int64_t unparsed = 0;                    // no answer found in the text
  std::map<int, int64_t> tiers = {};
  std::map<std::string, Score> subsets = {};
  std::vector<std::string> warnings = {};  // why the score may not be valid

  bool valid() const { return warnings.empty(); }
};

Accuracy Summarise(const EvalData& data, const std::vector<GradedAnswer>& answers);

// Writes accuracy.json ("fulgur-accuracy/1") and items.jsonl (every answer) into `folder`.
struct EvalRun {
  std::string data_path = {};
  AskOptions ask = {};
};
absl::Status WriteAccuracy(const std::filesystem::path& folder, const EvalRun& run,
                           const EvalData& data, const Accuracy& accuracy,
                           const std::vector<GradedAnswer>& answers);

// What a folder written by WriteAccuracy says. Errors name the file.
struct StoredAnswers {
  std::string model = {};
  std::string dataset = {};
  std::string data_path = {};
  int64_t samples = 1;
  struct Row {
    std::string id = {};
    int64_t sample = 0;
    bool correct = false;
    Answer answer = {};
  };
  std::vector<Row> rows = {};
};
absl::StatusOr<StoredAnswers> ReadAnswers(const std::filesystem::path& folder);

// The stored texts as answers to the items of `data`; rows of unknown items are left out.
std::vector<Answer> AnswersOf(const StoredAnswers& stored, const EvalData& data);

// Two systems on the items that both answered.
struct AccuracyDifference {
  int64_t items = 0;
  double first = 0.0;
  double second = 0.0;
  Interval interval;  // 95 % of first - second, paired bootstrap over items
  double p = 1.0;     // McNemar, exact; by each item's majority when there are several samples
  double equal_texts = 0.0;  // share of answers that are byte-equal
};
absl::StatusOr<AccuracyDifference> CompareAnswers(const StoredAnswers& first,
                                                  const StoredAnswers& second);

// A published score of DeepSeek-V4-Flash to stand beside a measured one.
struct PublishedScore {
  std::string_view dataset;
  double percent;
  double tolerance;  // what a nightly check allows
  std::string_view source;
};
std::optional<PublishedScore> FindPublishedScore(std::string_view dataset);

}  // namespace fulgur::bench

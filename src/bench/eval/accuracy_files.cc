// The files of an evaluation.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "bench/eval/accuracy.h"
#include "bench/results/text_file.h"
#include "io/mapped_file.h"

namespace fulgur::bench {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kFormat = "fulgur-accuracy/1";
constexpr const char* kSummaryFile = "accuracy.json";
constexpr const char* kItemsFile = "items.jsonl";

template <typename Value>
Json OrNull(const std::optional<Value>& value) {
  return value ? Json(*value) : Json(nullptr);
}

Json SettingsOf(const EvalRun& run) {
  const AskOptions& ask = run.ask;
  return {{"data", run.data_path},
          {"url", ask.url},
          {"prompt_template", ask.prompt_template},
          {"concurrency", ask.concurrency},
          {"temperature", ask.temperature},
          {"top_p", ask.top_p},
          {"max_tokens", ask.max_tokens},
          {"thinking", OrNull(ask.thinking)},
          {"seed", OrNull(ask.seed)},
          {"extra", ask.extra}};
}

Json SummaryOf(const EvalRun& run, const Accuracy& accuracy) {
  Json subsets = Json::object();
  for (const auto& [name, score] : accuracy.subsets) {
    subsets[name] = {{"right", score.right}, {"total", score.total}};
  }
  Json pass_at = Json::object();
  for (const auto& [k, share] : accuracy.pass_at) pass_at[std::to_string(k)] = share;
  Json tiers = Json::object();
  for (const auto& [tier, count] : accuracy.tiers) tiers[std::to_string(tier)] = count;
  return {{"format", kFormat},
          {"model", accuracy.model},
          {"dataset", accuracy.dataset},
          {"n", accuracy.num_items},
          {"k", accuracy.samples},
          {"score", accuracy.score},
          {"stderr", accuracy.standard_error},
          {"ci95", {accuracy.interval.low, accuracy.interval.high}},
          {"majority", OrNull(accuracy.majority)},
          {"pass_at_k", pass_at},
          {"valid", accuracy.valid()},
          {"warnings", accuracy.warnings},
          {"failed", accuracy.failed},
          {"truncated", accuracy.truncated},
          {"unparsed", accuracy.unparsed},
          {"tiers", tiers},
          {"by_subset", subsets},
          {"settings", SettingsOf(run)},
          {"items_file", kItemsFile}};
}

Json LineOf(const EvalItem& item, const GradedAnswer& graded) {
  const Answer& answer = graded.answer;
  return {{"id", item.id},
          {"sample", answer.sample},
          {"gold", item.gold},
          {"answer", graded.grade.answer},
          {"tier", graded.grade.tier},
          {"correct", graded.grade.correct},
          {"finish_reason", answer.finish_reason},
          {"error", answer.error},
          {"prompt_tokens", OrNull(answer.prompt_tokens)},
          {"completion_tokens", OrNull(answer.completion_tokens)},
          {"latency_ms", answer.latency_ms},
          {"text", answer.text},
          {"reasoning", answer.reasoning}};
}

std::string Dump(const Json& json, int indent) {
  return json.dump(indent, ' ', false, Json::error_handler_t::replace);
}

std::string TextAt(const Json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

int64_t CountAt(const Json& object, const char* key, int64_t otherwise) {
  const auto found = object.find(key);
  return found != object.end() && found->is_number_integer() ? found->get<int64_t>() : otherwise;
}

StoredAnswers::Row RowOf(const Json& line) {
  StoredAnswers::Row row{.id = TextAt(line, "id"), .sample = CountAt(line, "sample", 0)};
  const auto correct = line.find("correct");
  row.correct = correct != line.end() && correct->is_boolean() && correct->get<bool>();
  row.answer.sample = row.sample;
  row.answer.text = TextAt(line, "text");
  row.answer.reasoning = TextAt(line, "reasoning");
  row.answer.finish_reason = TextAt(line, "finish_reason");
  row.answer.error = TextAt(line, "error");
  row.answer.prompt_tokens = CountAt(line, "prompt_tokens", 0);
  row.answer.completion_tokens = CountAt(line, "completion_tokens", 0);
  const auto latency = line.find("latency_ms");
  if (latency != line.end() && latency->is_number()) row.answer.latency_ms = latency->get<double>();
  return row;
}

absl::Status ReadRows(const std::string& path, StoredAnswers& stored) {
  ASSIGN_OR_RETURN(const io::MappedFile file, io::MappedFile::Open(path));
  const std::string_view text = file.text();
  int64_t number = 0;
  for (size_t start = 0; start < text.size();) {
    const size_t end = std::min(text.find('\n', start), text.size());
    const Json line = Json::parse(text.substr(start, end - start), nullptr, false);
    start = end + 1;
    ++number;
    if (!line.is_object() || TextAt(line, "id").empty()) {
      return absl::InvalidArgumentError(absl::StrCat(
          path, ": line ", number, " is no answer (a JSON object with an id); was the file cut?"));
    }
    stored.rows.push_back(RowOf(line));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status WriteAccuracy(const std::filesystem::path& folder, const EvalRun& run,
                           const EvalData& data, const Accuracy& accuracy,
                           const std::vector<GradedAnswer>& answers) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) {
    return absl::InvalidArgumentError(
        absl::StrCat("cannot make the folder ", folder.string(), ": ", error.message()));
  }
  std::string lines;
  for (const GradedAnswer& graded : answers) {
    absl::StrAppend(&lines, Dump(LineOf(data.items[graded.answer.item], graded), -1), "\n");
  }
  RETURN_IF_ERROR(WriteTextFile(folder / kItemsFile, lines));
  return WriteTextFile(folder / kSummaryFile, Dump(SummaryOf(run, accuracy), 1) + "\n");
}

absl::StatusOr<StoredAnswers> ReadAnswers(const std::filesystem::path& folder) {
  const std::string path = (folder / kSummaryFile).string();
  ASSIGN_OR_RETURN(const io::MappedFile file, io::MappedFile::Open(path));
  const Json summary = Json::parse(file.text(), nullptr, false);
  if (!summary.is_object() || TextAt(summary, "format") != kFormat) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, " is no result of fulgur eval (format ", std::string(kFormat), ")"));
  }
  StoredAnswers stored{.model = TextAt(summary, "model"),
                       .dataset = TextAt(summary, "dataset"),
                       .samples = CountAt(summary, "k", 1)};
  const auto settings = summary.find("settings");
  if (settings != summary.end() && settings->is_object()) {
    stored.data_path = TextAt(*settings, "data");
  }
  RETURN_IF_ERROR(ReadRows((folder / kItemsFile).string(), stored));
  return stored;
}

std::vector<Answer> AnswersOf(const StoredAnswers& stored, const EvalData& data) {
  std::map<std::string, size_t> index;
  for (size_t i = 0; i < data.items.size(); ++i) index[data.items[i].id] = i;
  std::vector<Answer> answers;
  for (const StoredAnswers::Row& row : stored.rows) {
    const auto item = index.find(row.id);
    if (item == index.end()) continue;
    answers.push_back(row.answer);
    answers.back().item = item->second;
  }
  return answers;
}

}  // namespace fulgur::bench

#include "bench/eval/eval_item.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <span>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "base/status_macros.h"
#include "bench/eval/live_code.h"
#include "bench/eval/needle.h"
#include "bench/eval/self_test.h"
#include "bench/results/csv.h"
#include "io/mapped_file.h"
#include "nlohmann/json.hpp"

namespace fulgur::bench {
namespace {

using Json = nlohmann::json;

std::string TextAt(const Json& row, const char* key) {
  const auto found = row.find(key);
  if (found == row.end()) return "";
  return found->is_string() ? found->get<std::string>() : found->dump();
}

// An absent item means that a field is missing.
using ReadRow = std::function<std::optional<EvalItem>(const Json& row)>;

// ---- JSON rows, one function per data set ----

std::optional<EvalItem> Gsm8kRow(const Json& row) {
  const std::string answer = TextAt(row, "answer");
  const size_t mark = answer.rfind("#### ");
  EvalItem item{.question = TextAt(row, "question")};
  if (item.question.empty() || mark == std::string::npos) return std::nullopt;
  item.gold = absl::StrReplaceAll(answer.substr(mark + 5), {{",", ""}, {" ", ""}, {"\n", ""}});
  return item;
}

std::optional<EvalItem> ProblemRow(const Json& row) {
  EvalItem item{.question = TextAt(row, "problem"), .gold = TextAt(row, "answer")};
  if (item.question.empty()) item.question = TextAt(row, "question");
  if (item.question.empty() || item.gold.empty()) return std::nullopt;
  return item;
}

std::optional<EvalItem> MmluProRow(const Json& row) {
  EvalItem item{.subset = TextAt(row, "category"),
                .question = TextAt(row, "question"),
                .gold = TextAt(row, "answer")};
  const auto options = row.find("options");
  if (item.question.empty() || item.gold.size() != 1) return std::nullopt;
  if (options == row.end() || !options->is_array() || options->empty()) return std::nullopt;
  for (const Json& option : *options) {
    item.options.push_back(option.is_string() ? option.get<std::string>() : option.dump());
  }
  return item;
}

std::optional<EvalItem> HumanEvalRow(const Json& row) {
  EvalItem item{.id = TextAt(row, "task_id"),
                .question = TextAt(row, "prompt"),
                .code_head = TextAt(row, "prompt"),
                .entry_point = TextAt(row, "entry_point")};
  const std::string test = TextAt(row, "test");
  if (item.question.empty() || item.entry_point.empty() || test.empty()) return std::nullopt;
  item.code_tests = absl::StrCat(test, "\n\ncheck(", item.entry_point, ")\n");
  return item;
}

std::optional<EvalItem> MbppRow(const Json& row) {
  EvalItem item{.id = TextAt(row, "task_id"), .question = TextAt(row, "text")};
  if (item.question.empty()) item.question = TextAt(row, "prompt");
  const auto tests = row.find("test_list");
  if (item.question.empty() || tests == row.end() || !tests->is_array()) return std::nullopt;
  item.question += "\nYour code must pass these tests:\n";
  for (const Json& test : *tests) {
    if (!test.is_string()) return std::nullopt;
    absl::StrAppend(&item.code_tests, test.get<std::string>(), "\n");
  }
  item.question += item.code_tests;
  return item;
}

// ---- CSV rows ----

// question, A, B, C, D, answer: the file has no header.
std::optional<EvalItem> MmluFields(std::span<const std::string> fields) {
  if (fields.size() != 6 || fields[5].size() != 1) return std::nullopt;
  EvalItem item{.question = fields[0], .gold = fields[5]};
  item.options.assign(fields.begin() + 1, fields.begin() + 5);
  return item;
}

// The right answer moves by one letter from item to item, and with every sample.
EvalItem Rotated(std::string question, std::span<const std::string> options, int64_t rotation) {
  EvalItem item{.question = std::move(question)};
  const auto count = static_cast<int64_t>(options.size());
  for (int64_t i = 0; i < count; ++i) {
    item.options.push_back(options[static_cast<size_t>((i + rotation) % count)]);
  }
  const int64_t right = (count - rotation % count) % count;
  item.gold = std::string(1, static_cast<char>('A' + right));
  return item;
}

std::optional<size_t> ColumnOf(std::span<const std::string> header, std::string_view name) {
  for (size_t i = 0; i < header.size(); ++i) {
    if (header[i] == name) return i;
  }
  return std::nullopt;
}

void Skip(EvalData& data, const std::string& path, size_t row) {
  if (data.skipped_rows++ > 0) return;
  data.first_problem =
      absl::StrFormat("%s: row %d lacks a field that %s needs", path, row + 1, data.name);
}

void Keep(EvalData& data, EvalItem item) {
  if (item.id.empty()) item.id = absl::StrCat(data.name, "-", data.items.size());
  data.items.push_back(std::move(item));
}

absl::StatusOr<std::vector<Json>> JsonRows(std::string_view text, const std::string& path) {
  std::vector<Json> rows;
  const size_t first = text.find_first_not_of(" \t\r\n");
  if (first != std::string_view::npos && text[first] == '[') {
    const Json all = Json::parse(text, nullptr, false);
    if (!all.is_array()) return absl::InvalidArgumentError(path + " is no JSON array");
    rows.assign(all.begin(), all.end());
    return rows;
  }
  for (size_t start = 0; start < text.size();) {
    const size_t end = std::min(text.find('\n', start), text.size());
    const std::string_view line = text.substr(start, end - start);
    start = end + 1;
    if (line.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    rows.push_back(Json::parse(line, nullptr, false));  // a bad line is a discarded value
  }
  return rows;
}

absl::Status ReadJsonItems(const std::string& path, const ReadRow& read, EvalData& data) {
  ASSIGN_OR_RETURN(const io::MappedFile file, io::MappedFile::Open(path));
  ASSIGN_OR_RETURN(const std::vector<Json> rows, JsonRows(file.text(), path));
  for (size_t i = 0; i < rows.size(); ++i) {
    std::optional<EvalItem> item;
    if (rows[i].is_object()) item = read(rows[i]);
    if (item) {
      Keep(data, *std::move(item));
    } else {
      Skip(data, path, i);
    }
  }
  return absl::OkStatus();
}

absl::Status ReadMmlu(const std::string& path, EvalData& data) {
  ASSIGN_OR_RETURN(const io::MappedFile file, io::MappedFile::Open(path));
  ASSIGN_OR_RETURN(const auto rows, ParseCsv(file.text(), path));
  for (size_t i = 0; i < rows.size(); ++i) {
    auto item = MmluFields(rows[i]);
    if (item) {
      Keep(data, *std::move(item));
    } else {
      Skip(data, path, i);
    }
  }
  return absl::OkStatus();
}

absl::Status ReadGpqa(const std::string& path, int64_t rotation, EvalData& data) {
  constexpr std::string_view kColumns[] = {"Question", "Correct Answer", "Incorrect Answer 1",
                                           "Incorrect Answer 2", "Incorrect Answer 3"};
  ASSIGN_OR_RETURN(const io::MappedFile file, io::MappedFile::Open(path));
  ASSIGN_OR_RETURN(const auto rows, ParseCsv(file.text(), path));
  std::vector<size_t> at;
  for (std::string_view name : kColumns) {
    const auto column = rows.empty() ? std::nullopt : ColumnOf(rows.front(), name);
    if (!column) {
      return absl::InvalidArgumentError(
          absl::StrCat(path, " has no column '", std::string(name), "' in its first row"));
    }
    at.push_back(*column);
  }
  const size_t widest = *std::max_element(at.begin(), at.end());
  for (size_t i = 1; i < rows.size(); ++i) {
    if (rows[i].size() <= widest) {
      Skip(data, path, i);
      continue;
    }
    std::vector<std::string> options;
    for (size_t c = 1; c < at.size(); ++c) options.push_back(rows[i][at[c]]);
    Keep(data, Rotated(rows[i][at[0]], options, static_cast<int64_t>(i) - 1 + rotation));
  }
  return absl::OkStatus();
}

// ---- the table ----

struct Reader {
  std::string_view name;
  AnswerKind kind;
  std::string_view help;
  ReadRow read;  // of JSON sets
};

const std::vector<Reader>& Readers() {
  static const std::vector<Reader> kReaders = {
      {"gsm8k", AnswerKind::kNumber, "JSON lines with question and answer (#### number)", Gsm8kRow},
      {"aime", AnswerKind::kInteger, "JSON lines with problem and answer", ProblemRow},
      {"math500", AnswerKind::kMath, "JSON lines with problem and answer (LaTeX)", ProblemRow},
      {"mmlu", AnswerKind::kLetter, "CSV: question,A,B,C,D,answer", nullptr},
      {"mmlu-pro", AnswerKind::kLetter, "JSON lines with question, options and answer", MmluProRow},
      {"gpqa", AnswerKind::kLetter, "the published CSV with its column names", nullptr},
      {"humaneval", AnswerKind::kCode, "JSON lines with prompt, test and entry_point",
       HumanEvalRow},
      {"mbpp", AnswerKind::kCode, "JSON lines with text and test_list", MbppRow},
      {"livecodebench", AnswerKind::kCode, "the published JSON lines, with their tests",
       LiveCodeRow},
      {"needle", AnswerKind::kText, "numbers hidden in made-up text of growing length", nullptr},
      {"selftest-mc", AnswerKind::kLetter, "40 small questions made by this program", nullptr},
      {"selftest-math", AnswerKind::kNumber, "60 small sums in words made by this program",
       nullptr},
  };
  return kReaders;
}

const Reader* FindReader(const std::string& name) {
  for (const Reader& reader : Readers()) {
    if (reader.name == name) return &reader;
  }
  return nullptr;
}

absl::Status Fill(const Reader& reader, const std::string& path, const EvalDataOptions& options,
                  EvalData& data) {
  if (reader.name == "needle") return MakeNeedleItems(options.needle, data), absl::OkStatus();
  if (reader.name == "selftest-mc") return MakeChoiceItems(data), absl::OkStatus();
  if (reader.name == "selftest-math") return MakeSumItems(data), absl::OkStatus();
  if (path.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--dataset ", data.name, " needs --data FILE: ", std::string(reader.help)));
  }
  if (reader.name == "mmlu") return ReadMmlu(path, data);
  if (reader.name == "gpqa") return ReadGpqa(path, options.rotation, data);
  constexpr int64_t kManyTestsSeconds = 30;
  if (reader.name == "livecodebench") data.run_seconds = kManyTestsSeconds;
  return ReadJsonItems(path, reader.read, data);
}

std::string OptionLines(const EvalItem& item) {
  std::string lines;
  for (size_t i = 0; i < item.options.size(); ++i) {
    absl::StrAppendFormat(&lines, "%c) %s\n", static_cast<char>('A' + i), item.options[i]);
  }
  return lines;
}

}  // namespace

std::vector<DatasetHelp> KnownDatasets() {
  std::vector<DatasetHelp> known;
  for (const Reader& reader : Readers()) known.push_back({reader.name, reader.help});
  return known;
}

absl::StatusOr<EvalData> ReadEvalData(const std::string& dataset, const std::string& path,
                                      const EvalDataOptions& options) {
  const Reader* reader = FindReader(dataset);
  if (reader == nullptr) {
    std::vector<std::string> names;
    for (const Reader& known : Readers()) names.emplace_back(known.name);
    return absl::InvalidArgumentError(absl::StrCat(
        "--dataset ", dataset, " is not known; there are ", absl::StrJoin(names, ", ")));
  }
  EvalData data{.name = dataset, .kind = reader->kind};
  RETURN_IF_ERROR(Fill(*reader, path, options, data));
  if (data.items.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, " holds no question of ", dataset, " (", std::string(reader->help), ")",
                     data.first_problem.empty() ? "" : "; " + data.first_problem));
  }
  return data;
}

std::string RenderPrompt(const std::string& prompt_template, const EvalItem& item) {
  return absl::StrReplaceAll(prompt_template,
                             {{"{question}", item.question}, {"{options}", OptionLines(item)}});
}

std::string DefaultTemplate(AnswerKind kind) {
  switch (kind) {
    case AnswerKind::kNumber:
      return "{question}\n\nSolve this step by step. End with a line of the form\nanswer: <number>";
    case AnswerKind::kInteger:
    case AnswerKind::kMath:
      return "{question}\n\nReason step by step and put the final answer in \\boxed{}.";
    case AnswerKind::kLetter:
      return "{question}\n\n{options}\nEnd with a line of the form\nAnswer: <letter>";
    case AnswerKind::kCode:
      return "Write the Python code that this describes. Answer with one code block that holds all "
             "of it and its imports.\n\n{question}";
    case AnswerKind::kText:
      return "{question}";
  }
  return "{question}";
}

}  // namespace fulgur::bench

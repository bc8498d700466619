#include "bench/results/result_reader.h"

#include <array>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "base/status_macros.h"
#include "bench/results/aiperf_reader.h"
#include "bench/results/aisbench_reader.h"
#include "bench/results/ds4_reader.h"
#include "bench/results/evalscope_reader.h"
#include "bench/results/guidellm_reader.h"
#include "bench/results/inferencex_reader.h"
#include "bench/results/reference_reader.h"
#include "bench/results/serving_bench_reader.h"
#include "bench/results/strings.h"
#include "fmt/format.h"
#include "io/json.h"
#include "io/mapped_file.h"

namespace fulgur::bench {
namespace {

constexpr std::string_view kKnownTools =
    "aiperf, vLLM bench, SGLang, guidellm, evalscope, AISBench, InferenceX, ds4-bench or a "
    "fulgur-reference/1 file";

// Files of known tools that hold no result of one cell.
std::string_view WhatElse(const JsonObject& root) {
  if (FieldAt(root, "timeslices")) return "aiperf's time slices";
  if (FieldAt(root, "endpoints") || TextAt(root, "aggregation_type") == "sweep") {
    return "a summary over several runs";
  }
  if (const auto metadata = ObjectAt(root, "metadata")) {
    if (FieldAt(*metadata, "aggregation_type")) return "aiperf's means over repeated runs";
  }
  if (FieldAt(root, "data") && !FieldAt(root, "metrics")) return "a list of requests";
  if (TextAt(root, "format").starts_with("fulgur-comparison")) return "a comparison of results";
  if (TextAt(root, "format").starts_with("fulgur-run")) return "our own notes beside a result";
  return "";
}

absl::Status Unknown(const JsonObject& root, const std::string& source) {
  const std::string_view what = WhatElse(root);
  if (!what.empty()) {
    return absl::NotFoundError(
        fmt::format("{} holds {}, not the result of one cell", source, what));
  }
  return absl::NotFoundError(fmt::format(
      "{} is JSON, but not a result file that is known here ({})", source, kKnownTools));
}

// With `neighbours`, requests and tables beside the file are read too.
absl::StatusOr<std::vector<Result>> FromObject(const JsonObject& root,
                                               const std::filesystem::path& file, bool neighbours) {
  if (TextAt(root, "format") == kReferenceFormat) return ReadReference(root, file);
  if (IsGuidellm(root)) return ReadGuidellm(root, file);
  if (IsEvalscopeSummary(root)) {
    return std::vector<Result>{neighbours ? ReadEvalscopeFolder(root, file)
                                          : ReadEvalscopeSummary(root, file)};
  }
  if (IsAisbench(root)) {
    return std::vector<Result>{neighbours ? ReadAisbenchFolder(root, file)
                                          : ReadAisbenchSummary(root, file)};
  }
  if (IsInferenceX(root)) return std::vector<Result>{ReadInferenceX(root, file)};
  if (IsServingBench(root)) return std::vector<Result>{ReadServingBench(root, file)};
  if (IsAiperfSummary(root)) {
    return std::vector<Result>{neighbours ? ReadAiperfFolder(root, file)
                                          : ReadAiperfSummary(root, file)};
  }
  return Unknown(root, file.string());
}

absl::Status NotJson(std::string_view text, const absl::Status& why) {
  const char last = text.back();
  const bool cut_off = text.front() == '{' && last != '}' && last != ']';
  return absl::DataLossError(fmt::format(
      "{}{}", Sentence(why), cut_off ? "; the end is missing, as if it was cut off" : ""));
}

// SGLang appends a line per run; a broken line does not spoil the others.
absl::StatusOr<std::vector<Result>> FromLines(std::string_view text,
                                              const std::filesystem::path& file) {
  std::vector<Result> results;
  std::vector<std::string> problems;
  int64_t number = 0;
  while (!text.empty()) {
    const std::string_view line = TakeLine(text);
    ++number;
    if (Trimmed(line).empty()) continue;
    const std::string source = fmt::format("{}, line {}", file.string(), number);
    const auto document = io::JsonDocument::Parse(line, source);
    JsonObject root;
    if (!document.ok()) {
      problems.push_back(Sentence(document.status()));
    } else if (document->root().get(root) != simdjson::SUCCESS || !IsServingBench(root)) {
      problems.push_back(fmt::format("{} is not a result of SGLang", source));
    } else {
      results.push_back(ReadServingBench(root, file));
    }
  }
  if (results.empty()) return absl::DataLossError(problems.empty() ? "no line" : problems.front());
  auto& kept = results.front().problems;
  kept.insert(kept.end(), problems.begin(), problems.end());
  return results;
}

// InferenceX gathers the results of a night in one list.
absl::StatusOr<std::vector<Result>> FromList(const JsonArray& list,
                                             const std::filesystem::path& file) {
  std::vector<Result> results;
  size_t others = 0;
  for (const JsonElement element : list) {
    JsonObject object;
    if (element.get(object) == simdjson::SUCCESS && IsInferenceX(object)) {
      results.push_back(ReadInferenceX(object, file));
    } else {
      ++others;
    }
  }
  if (results.empty()) {
    return absl::NotFoundError(
        fmt::format("{} is a JSON list, but not one of results of InferenceX", file.string()));
  }
  if (others > 0) {
    results.front().problems.push_back(
        fmt::format("{}: {} entries are no results and are left out", file.string(), others));
  }
  return results;
}

bool LooksLikeLines(std::string_view text) {
  const size_t end = text.find('\n');
  if (end == std::string_view::npos) return false;
  const std::string_view first = Trimmed(text.substr(0, end));
  const std::string_view rest = Trimmed(text.substr(end));
  return first.starts_with('{') && first.ends_with('}') && rest.starts_with('{');
}

absl::StatusOr<std::vector<Result>> FromText(std::string_view text,
                                             const std::filesystem::path& file, bool neighbours) {
  const std::string source = file.string();
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
  text = Trimmed(text);
  if (text.empty()) return absl::DataLossError(fmt::format("{} is empty", source));
  if (IsDs4Table(text)) return ReadDs4Table(text, file);
  if (LooksLikeLines(text)) return FromLines(text, file);
  const auto document = io::JsonDocument::Parse(text, source);
  if (!document.ok()) return NotJson(text, document.status());
  JsonObject root;
  if (document->root().get(root) == simdjson::SUCCESS) return FromObject(root, file, neighbours);
  JsonArray list;
  if (document->root().get(list) == simdjson::SUCCESS) return FromList(list, file);
  return absl::NotFoundError(fmt::format("{} is JSON, but no object with results", source));
}

}  // namespace

absl::StatusOr<std::vector<Result>> ReadResultFile(const std::filesystem::path& file) {
  ASSIGN_OR_RETURN(const io::MappedFile mapped, io::MappedFile::Open(file.string()));
  return FromText(mapped.text(), file, true);
}

absl::StatusOr<std::vector<Result>> ParseResults(std::string_view text,
                                                 const std::filesystem::path& file) {
  return FromText(text, file, false);
}

std::string_view KindName(ResultKind kind) {
  switch (kind) {
    case ResultKind::kAiperf:
      return "aiperf";
    case ResultKind::kVllmBench:
      return "vLLM bench";
    case ResultKind::kSglang:
      return "SGLang";
    case ResultKind::kGuidellm:
      return "guidellm";
    case ResultKind::kEvalscope:
      return "evalscope";
    case ResultKind::kAisbench:
      return "AISBench";
    case ResultKind::kInferenceX:
      return "InferenceX";
    case ResultKind::kDs4:
      return "ds4-bench";
    case ResultKind::kReference:
      return "reference";
  }
  return "";
}

}  // namespace fulgur::bench

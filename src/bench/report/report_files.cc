#include "bench/report/report_files.h"

#include <optional>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "bench/results/result_reader.h"
#include "io/mapped_file.h"
#include "nlohmann/json.hpp"

namespace fulgur::bench {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr double kPercent = 100.0;  // the file has shares from 0 to 1

std::optional<fs::path> Locate(const std::string& path, const fs::path& folder) {
  std::error_code ignored;
  for (const fs::path& candidate : {fs::path(path), folder / path}) {
    if (fs::is_regular_file(candidate, ignored)) return candidate;
  }
  return std::nullopt;
}

std::optional<double> NumberOf(const json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end() || !found->is_number()) return std::nullopt;
  return found->get<double>();
}

std::optional<int64_t> CountOf(const json& object, const char* key) {
  const auto number = NumberOf(object, key);
  if (!number) return std::nullopt;
  return static_cast<int64_t>(*number);
}

}  // namespace

std::vector<CellRequests> ReadRequests(const Comparison& comparison, const fs::path& folder) {
  std::vector<CellRequests> all;
  for (const CellFacts& cell : comparison.cells) {
    if (cell.provenance.empty()) continue;
    const auto file = Locate(cell.provenance.front().path, folder);
    if (!file) continue;
    auto results = ReadResultFile(*file);
    // Files with several results do not say which of them this cell is.
    if (!results.ok() || results->size() != 1 || results->front().requests.empty()) continue;
    all.push_back(
        {cell.system, cell.scenario, cell.concurrency, std::move(results->front().requests)});
  }
  return all;
}

std::vector<CellSlices> ReadSlices(const Comparison& comparison, const fs::path& folder) {
  std::vector<CellSlices> all;
  for (const CellFacts& cell : comparison.cells) {
    if (cell.provenance.empty()) continue;
    const auto summary = Locate(cell.provenance.front().path, folder);
    if (!summary) continue;
    fs::path file = *summary;
    file.replace_filename(absl::StrCat(file.stem().string(), "_timeslices.json"));
    std::error_code ignored;
    if (!fs::exists(file, ignored)) continue;
    auto slices = ReadTimeSlices(file);
    if (slices.ok()) {
      all.push_back({cell.system, cell.scenario, cell.concurrency, *std::move(slices)});
    }
  }
  return all;
}

absl::StatusOr<AccuracyScore> ReadAccuracy(const std::string& system, const fs::path& file) {
  ASSIGN_OR_RETURN(const io::MappedFile mapped, io::MappedFile::Open(file.string()));
  const json told = json::parse(mapped.text(), nullptr, false);
  if (!told.is_object() || told.value("format", "") != "fulgur-accuracy/1") {
    return absl::InvalidArgumentError(
        absl::StrCat(file.string(),
                     " is not a result of fulgur eval: it lacks \"format\": "
                     "\"fulgur-accuracy/1\""));
  }
  const auto score = NumberOf(told, "score");
  if (!score) {
    return absl::InvalidArgumentError(absl::StrCat(file.string(), " holds no number \"score\""));
  }
  AccuracyScore accuracy;
  accuracy.system = system;
  accuracy.dataset = told.contains("dataset") && told["dataset"].is_string()
                         ? told["dataset"].get<std::string>()
                         : "?";
  accuracy.score = *score * kPercent;
  if (told.contains("ci95") && told["ci95"].is_array() && told["ci95"].size() == 2 &&
      told["ci95"][0].is_number() && told["ci95"][1].is_number()) {
    accuracy.low = told["ci95"][0].get<double>() * kPercent;
    accuracy.high = told["ci95"][1].get<double>() * kPercent;
  }
  accuracy.items = CountOf(told, "n");
  accuracy.truncated = CountOf(told, "truncated");
  accuracy.unparsed = CountOf(told, "unparsed");
  return accuracy;
}

}  // namespace fulgur::bench

#include "bench/results/comparison_json.h"

#include <array>
#include <cmath>
#include <utility>

#include "base/status_macros.h"
#include "bench/results/json_fields.h"
#include "bench/results/strings.h"
#include "bench/results/text_file.h"
#include "bench/results/trials.h"
#include "bench/results/utilisation_json.h"
#include "fmt/format.h"
#include "io/json.h"
#include "io/mapped_file.h"
#include "nlohmann/json.hpp"

namespace fulgur::bench {
namespace {

using OrderedJson = nlohmann::ordered_json;

constexpr std::string_view kFormat = "fulgur-comparison/1";
constexpr std::array<std::string_view, 3> kRoles = {"baseline", "treatment", "reference"};

void Set(OrderedJson& json, const char* key, const std::optional<double>& value) {
  if (value && std::isfinite(*value)) json[key] = *value;
}

void Set(OrderedJson& json, const char* key, const std::optional<int64_t>& value) {
  if (value) json[key] = *value;
}

void Set(OrderedJson& json, const char* key, const std::string& text) {
  if (!text.empty()) json[key] = text;
}

OrderedJson ToJson(const MetricBlock& block) {
  OrderedJson json = {{"unit", block.unit}};
  Set(json, "avg", block.avg);
  for (const auto& [q, value] : block.percentiles) {
    Set(json, fmt::format("p{}", q).c_str(), std::optional(value));
  }
  Set(json, "min", block.min);
  Set(json, "max", block.max);
  Set(json, "std", block.std);
  Set(json, "count", block.count);
  Set(json, "sum", block.sum);
  return json;
}

OrderedJson ToJson(const LintFinding& finding) {
  return {
      {"rule", finding.rule}, {"severity", SeverityName(finding.severity)}, {"text", finding.text}};
}

OrderedJson ToJson(const ErrorGroup& group) {
  OrderedJson json = OrderedJson::object();
  if (group.code) json["code"] = *group.code;
  json["type"] = group.type;
  json["message"] = group.message;
  json["count"] = group.count;
  return json;
}

OrderedJson ToJson(const Provenance& provenance) {
  OrderedJson json = {{"path", provenance.path}, {"kind", provenance.kind}};
  Set(json, "version", provenance.version);
  Set(json, "sha256", provenance.sha256);
  return json;
}

OrderedJson ToJson(const PhaseWindow& phase) {
  return {{"name", phase.name},
          {"wall_start_ns", phase.wall_start_ns},
          {"wall_end_ns", phase.wall_end_ns}};
}

OrderedJson ToJson(const SystemFacts& system) {
  OrderedJson json = {{"id", system.id},
                      {"label", system.label},
                      {"role", kRoles[static_cast<size_t>(system.role)]}};
  Set(json, "devices", system.devices);
  Set(json, "source", system.source);
  json["environment"] = system.environment;
  if (system.utilisation) json["utilisation"] = UtilisationToJson(*system.utilisation);
  for (const LintFinding& finding : system.lint) json["lint"].push_back(ToJson(finding));
  return json;
}

OrderedJson ToJson(const ScenarioFacts& scenario) {
  return {{"id", scenario.id}, {"label", scenario.label}};
}

OrderedJson ToJson(const CellFacts& cell);
OrderedJson ToJson(const Contrast& contrast);
OrderedJson ToJson(const SpeedupMean& mean);
OrderedJson ToJson(const Confounder& confounder);
OrderedJson ToJson(const Trial& trial);

template <typename T>
OrderedJson List(const std::vector<T>& items) {
  OrderedJson list = OrderedJson::array();
  for (const T& item : items) list.push_back(ToJson(item));
  return list;
}

OrderedJson ToJson(const CellFacts& cell) {
  OrderedJson json = {{"system", cell.system},
                      {"scenario", cell.scenario},
                      {"concurrency", cell.concurrency},
                      {"valid", cell.valid},
                      {"reasons", cell.reasons}};
  Set(json, "requests", cell.requests);
  Set(json, "errors", cell.errors);
  json["errors_by_code"] = cell.errors_by_code;
  json["error_groups"] = List(cell.error_groups);
  json["metrics"] = OrderedJson::object();
  for (const auto& [tag, block] : cell.metrics) json["metrics"][tag] = ToJson(block);
  json["repetitions"] = cell.repetitions;
  if (!cell.repetition_std.empty()) json["repetition_std"] = cell.repetition_std;
  json["phases"] = List(cell.phases);
  if (cell.utilisation) json["utilisation"] = UtilisationToJson(*cell.utilisation);
  json["lint"] = List(cell.lint);
  json["provenance"] = List(cell.provenance);
  return json;
}

OrderedJson ToJson(const Contrast& contrast) {
  OrderedJson json = {{"scenario", contrast.scenario},
                      {"concurrency", contrast.concurrency},
                      {"metric", contrast.tag},
                      {"statistic", contrast.statistic},
                      {"larger_is_better", contrast.larger_is_better}};
  Set(json, "baseline", contrast.baseline);
  Set(json, "treatment", contrast.treatment);
  Set(json, "speedup", contrast.speedup);
  Set(json, "delta_percent", contrast.delta_percent);
  if (contrast.interval) {
    json["interval"] = {{"low", contrast.interval->low}, {"high", contrast.interval->high}};
  }
  json["verdict"] = VerdictName(contrast.verdict);
  Set(json, "note", contrast.note);
  return json;
}

OrderedJson ToJson(const SpeedupMean& mean) {
  OrderedJson json = OrderedJson::object();
  Set(json, "scenario", mean.scenario);
  json["mean"] = mean.mean;
  json["cells"] = mean.cells;
  return json;
}

OrderedJson ToJson(const Confounder& confounder) {
  return {{"key", confounder.key},
          {"baseline", confounder.baseline},
          {"treatment", confounder.treatment}};
}

OrderedJson ToJson(const Trial& trial) {
  OrderedJson json = {{"id", trial.id}, {"change", trial.change}};
  Set(json, "tag", trial.tag);
  Set(json, "delta_percent", trial.delta_percent);
  Set(json, "errors", trial.errors);
  json["decision"] = trial.decision;
  Set(json, "reason", trial.reason);
  return json;
}

MetricBlock BlockFrom(const JsonObject& object) {
  MetricBlock block;
  block.unit = TextAt(object, "unit");
  for (const auto field : object) {
    const auto value = NumberOf(field.value);
    if (value) SetStatistic(field.key, *value, block);
  }
  return block;
}

std::vector<LintFinding> LintFrom(const JsonObject& parent) {
  std::vector<LintFinding> findings;
  for (const JsonObject& object : ObjectsAt(parent, "lint")) {
    const std::string severity = TextAt(object, "severity");
    findings.push_back({TextAt(object, "rule"),
                        severity == "fail"   ? Severity::kFail
                        : severity == "warn" ? Severity::kWarn
                                             : Severity::kPass,
                        TextAt(object, "text")});
  }
  return findings;
}

std::optional<UtilisationSummary> UtilisationFrom(const JsonObject& parent) {
  const auto object = ObjectAt(parent, "utilisation");
  return object ? std::optional(UtilisationFromJson(*object)) : std::nullopt;
}

std::optional<int> CodeFrom(const JsonObject& object) {
  const auto code = IntegerAt(object, "code");
  if (!code || *code < 0 || *code > 999) return std::nullopt;
  return static_cast<int>(*code);
}

SystemFacts SystemFrom(const JsonObject& object) {
  SystemFacts system;
  system.id = TextAt(object, "id");
  system.label = TextAt(object, "label");
  const std::string role = TextAt(object, "role");
  for (size_t i = 0; i < kRoles.size(); ++i) {
    if (role == kRoles[i]) system.role = static_cast<Role>(i);
  }
  system.devices = IntegerAt(object, "devices");
  system.source = TextAt(object, "source");
  system.environment = TextMapAt(object, "environment");
  system.utilisation = UtilisationFrom(object);
  system.lint = LintFrom(object);
  return system;
}

int32_t SmallCount(const JsonObject& object, const char* key, int32_t absent) {
  const auto value = IntegerAt(object, key);
  return value && *value >= 0 && *value < 1'000'000'000 ? static_cast<int32_t>(*value) : absent;
}

void ReadCellErrors(const JsonObject& object, CellFacts& cell) {
  cell.requests = IntegerAt(object, "requests");
  cell.errors = IntegerAt(object, "errors");
  const auto by_code = ObjectAt(object, "errors_by_code");
  if (by_code) {
    for (const auto field : *by_code) {
      if (const auto count = IntegerOf(field.value)) {
        cell.errors_by_code[std::string(field.key)] = *count;
      }
    }
  }
  for (const JsonObject& group : ObjectsAt(object, "error_groups")) {
    cell.error_groups.push_back({CodeFrom(group), TextAt(group, "type"), TextAt(group, "message"),
                                 IntegerAt(group, "count").value_or(0)});
  }
}

void ReadCellMetrics(const JsonObject& object, CellFacts& cell) {
  const auto metrics = ObjectAt(object, "metrics");
  if (metrics) {
    for (const auto field : *metrics) {
      JsonObject block;
      if (field.value.get(block) == simdjson::SUCCESS) {
        cell.metrics[std::string(field.key)] = BlockFrom(block);
      }
    }
  }
  const auto spread = ObjectAt(object, "repetition_std");
  if (!spread) return;
  for (const auto field : *spread) {
    if (const auto value = NumberOf(field.value)) {
      cell.repetition_std[std::string(field.key)] = *value;
    }
  }
}

CellFacts CellFrom(const JsonObject& object) {
  CellFacts cell;
  cell.system = TextAt(object, "system");
  cell.scenario = TextAt(object, "scenario");
  cell.concurrency = IntegerAt(object, "concurrency").value_or(0);
  cell.valid = BoolAt(object, "valid").value_or(true);
  cell.reasons = TextsAt(object, "reasons");
  ReadCellErrors(object, cell);
  ReadCellMetrics(object, cell);
  cell.repetitions = SmallCount(object, "repetitions", 1);
  for (const JsonObject& phase : ObjectsAt(object, "phases")) {
    cell.phases.push_back({TextAt(phase, "name"), IntegerAt(phase, "wall_start_ns").value_or(0),
                           IntegerAt(phase, "wall_end_ns").value_or(0)});
  }
  cell.utilisation = UtilisationFrom(object);
  cell.lint = LintFrom(object);
  for (const JsonObject& source : ObjectsAt(object, "provenance")) {
    cell.provenance.push_back({TextAt(source, "path"), TextAt(source, "kind"),
                               TextAt(source, "version"), TextAt(source, "sha256")});
  }
  return cell;
}

Verdict VerdictFrom(const std::string& name) {
  for (const Verdict verdict :
       {Verdict::kImproved, Verdict::kNeutral, Verdict::kRegression, Verdict::kNoise}) {
    if (VerdictName(verdict) == name) return verdict;
  }
  return Verdict::kNotAvailable;
}

Contrast ContrastFrom(const JsonObject& object) {
  Contrast contrast;
  contrast.scenario = TextAt(object, "scenario");
  contrast.concurrency = IntegerAt(object, "concurrency").value_or(0);
  contrast.tag = TextAt(object, "metric");
  contrast.statistic = TextAt(object, "statistic");
  contrast.larger_is_better = BoolAt(object, "larger_is_better").value_or(true);
  contrast.baseline = NumberAt(object, "baseline");
  contrast.treatment = NumberAt(object, "treatment");
  contrast.speedup = NumberAt(object, "speedup");
  contrast.delta_percent = NumberAt(object, "delta_percent");
  if (const auto interval = ObjectAt(object, "interval")) {
    const auto low = NumberAt(*interval, "low");
    const auto high = NumberAt(*interval, "high");
    if (low && high) contrast.interval = Interval{*low, *high};
  }
  contrast.verdict = VerdictFrom(TextAt(object, "verdict"));
  contrast.note = TextAt(object, "note");
  return contrast;
}

void ReadLists(const JsonObject& root, Comparison& comparison) {
  for (const JsonObject& object : ObjectsAt(root, "systems")) {
    comparison.systems.push_back(SystemFrom(object));
  }
  for (const JsonObject& object : ObjectsAt(root, "scenarios")) {
    comparison.scenarios.push_back({TextAt(object, "id"), TextMapAt(object, "label")});
  }
  for (const JsonObject& object : ObjectsAt(root, "cells")) {
    comparison.cells.push_back(CellFrom(object));
  }
  for (const JsonObject& object : ObjectsAt(root, "contrasts")) {
    comparison.contrasts.push_back(ContrastFrom(object));
  }
  for (const JsonObject& object : ObjectsAt(root, "means")) {
    comparison.means.push_back({TextAt(object, "scenario"), NumberAt(object, "mean").value_or(0.0),
                                SmallCount(object, "cells", 0)});
  }
  for (const JsonObject& object : ObjectsAt(root, "confounders")) {
    comparison.confounders.push_back(
        {TextAt(object, "key"), TextAt(object, "baseline"), TextAt(object, "treatment")});
  }
  for (const JsonObject& object : ObjectsAt(root, "trials")) {
    comparison.trials.push_back(TrialFromJson(object));
  }
}

}  // namespace

std::string ComparisonToJson(const Comparison& comparison) {
  OrderedJson json = {{"format", kFormat}};
  Set(json, "baseline", comparison.baseline);
  Set(json, "treatment", comparison.treatment);
  json["threshold"] = comparison.threshold;
  json["systems"] = List(comparison.systems);
  json["scenarios"] = List(comparison.scenarios);
  json["concurrencies"] = comparison.concurrencies;
  json["cells"] = List(comparison.cells);
  json["contrasts"] = List(comparison.contrasts);
  json["means"] = List(comparison.means);
  json["confounders"] = List(comparison.confounders);
  json["trials"] = List(comparison.trials);
  json["problems"] = comparison.problems;
  return json.dump(2, ' ', false, OrderedJson::error_handler_t::replace) + "\n";
}

absl::StatusOr<Comparison> ComparisonFromJson(std::string_view text) {
  ASSIGN_OR_RETURN(const io::JsonDocument document,
                   io::JsonDocument::Parse(text, "the comparison"));
  ASSIGN_OR_RETURN(const JsonObject root, io::RootObject(document, "the comparison"));
  if (TextAt(root, "format") != kFormat) {
    return absl::InvalidArgumentError(fmt::format(
        "the file has no \"format\": \"{}\"; `fulgur bench aggregate --json FILE` writes one",
        kFormat));
  }
  Comparison comparison;
  comparison.baseline = TextAt(root, "baseline");
  comparison.treatment = TextAt(root, "treatment");
  comparison.threshold = NumberAt(root, "threshold").value_or(comparison.threshold);
  for (const double value : NumbersAt(root, "concurrencies").value_or(std::vector<double>())) {
    if (value >= kUnlimited && value < 1e9)
      comparison.concurrencies.push_back(static_cast<int64_t>(value));
  }
  comparison.problems = TextsAt(root, "problems");
  ReadLists(root, comparison);
  return comparison;
}

absl::Status WriteComparison(const Comparison& comparison, const std::filesystem::path& file) {
  return WriteTextFile(file, ComparisonToJson(comparison));
}

absl::StatusOr<Comparison> ReadComparison(const std::filesystem::path& file) {
  ASSIGN_OR_RETURN(const io::MappedFile mapped, io::MappedFile::Open(file.string()));
  auto comparison = ComparisonFromJson(mapped.text());
  if (comparison.ok()) return comparison;
  return absl::Status(comparison.status().code(),
                      fmt::format("{}: {}", file.string(), Sentence(comparison.status())));
}

}  // namespace fulgur::bench

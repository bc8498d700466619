#include "bench/results/run_file.h"

#include <string>
#include <utility>

#include "base/status_macros.h"
#include "bench/results/json_fields.h"
#include "bench/results/strings.h"
#include "bench/results/text_file.h"
#include "fmt/format.h"
#include "io/json.h"
#include "nlohmann/json.hpp"

namespace fulgur::bench {
namespace {

using OrderedJson = nlohmann::ordered_json;

OrderedJson PhasesJson(const Cell& cell) {
  OrderedJson phases = OrderedJson::array();
  for (const PhaseWindow& phase : cell.phases) {
    phases.push_back({{"name", phase.name},
                      {"wall_start_ns", phase.wall_start_ns},
                      {"wall_end_ns", phase.wall_end_ns}});
  }
  return phases;
}

OrderedJson LintJson(const std::vector<LintFinding>& lint) {
  OrderedJson findings = OrderedJson::array();
  for (const LintFinding& finding : lint) {
    findings.push_back({{"rule", finding.rule},
                        {"severity", SeverityName(finding.severity)},
                        {"text", finding.text}});
  }
  return findings;
}

void ReadTexts(const JsonObject& root, const char* key, std::map<std::string, std::string>& into) {
  const auto object = ObjectAt(root, key);
  if (!object) return;
  for (const auto field : *object) {
    std::string_view text;
    if (field.value.get(text) == simdjson::SUCCESS) into[std::string(field.key)] = text;
  }
}

void ReadPhaseWindows(const JsonObject& root, Cell& cell) {
  const auto phases = ArrayAt(root, "phases");
  if (!phases) return;
  std::vector<PhaseWindow> windows;
  for (const JsonElement element : *phases) {
    JsonObject phase;
    if (element.get(phase) != simdjson::SUCCESS) continue;
    const auto start = IntegerAt(phase, "wall_start_ns");
    const auto end = IntegerAt(phase, "wall_end_ns");
    if (start && end && *end >= *start) windows.push_back({TextAt(phase, "name"), *start, *end});
  }
  if (!windows.empty()) cell.phases = std::move(windows);
}

absl::Status Read(const std::filesystem::path& file, Result& result) {
  ASSIGN_OR_RETURN(const io::JsonDocument document, io::JsonDocument::ReadFile(file.string()));
  ASSIGN_OR_RETURN(const JsonObject root, io::RootObject(document, file.string()));
  if (TextAt(root, "format") != kRunFormat) {
    return absl::InvalidArgumentError(
        fmt::format("{} has no \"format\": \"{}\" and is ignored", file.string(), kRunFormat));
  }
  Cell& cell = result.cell;
  if (const std::string scenario = TextAt(root, "scenario"); !scenario.empty()) {
    cell.scenario = scenario;
  }
  result.plan.token_source = TextAt(root, "token_source");
  ReadTexts(root, "environment", cell.environment);
  ReadTexts(root, "details", result.plan.details);
  ReadPhaseWindows(root, cell);
  return absl::OkStatus();
}

}  // namespace

absl::Status WriteRunFile(const std::filesystem::path& file, const RunPlan& plan, const Cell& cell,
                          const std::vector<LintFinding>& lint) {
  OrderedJson json = {{"format", kRunFormat},       {"benchmark_id", plan.benchmark_id},
                      {"scenario", cell.scenario},  {"token_source", plan.token_source},
                      {"details", plan.details},    {"environment", cell.environment},
                      {"phases", PhasesJson(cell)}, {"lint", LintJson(lint)}};
  return WriteTextFile(file,
                       json.dump(2, ' ', false, OrderedJson::error_handler_t::replace) + "\n");
}

void ReadRunFile(const std::filesystem::path& file, Result& result) {
  const absl::Status status = Read(file, result);
  if (!status.ok()) result.problems.push_back(Sentence(status));
}

}  // namespace fulgur::bench

// Sheet 5: what was compared, what else differed, what the checks found, where the numbers are
// from.
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "bench/report/workbook_sheets.h"
#include "bench/report/workbook_texts.h"
#include "fmt/format.h"

namespace fulgur::bench {
namespace {

class ConfigSheet {
 public:
  ConfigSheet(const WorkbookContext& context, Sheet& sheet)
      : context_(context), facts_(context.facts), sheet_(sheet) {}

  void Write() {
    sheet_.Widths({30, 70, 40, 16, 60});
    WriteKeys();
    WriteNames();
    WriteEnvironment();
    WriteProblems();
    WriteLint();
    WriteTrials();
    WriteProvenance();
  }

 private:
  void Pair(const std::string& key, const std::string& value) {
    sheet_.Text(row_, 0, key, Look::kLabel);
    sheet_.Text(row_++, 1, value, Look::kWrapped);
  }

  void Header(const std::vector<std::string>& names) {
    ++row_;
    Line(names, Look::kHeader);
  }

  void Line(const std::vector<std::string>& texts, Look look) {
    for (size_t i = 0; i < texts.size(); ++i) {
      sheet_.Text(row_, static_cast<uint16_t>(i), texts[i],
                  i == 0 && look != Look::kHeader ? Look::kLabel : look);
    }
    ++row_;
  }

  // Of the treatment, or of the baseline where there is no treatment.
  std::string Of(std::initializer_list<std::string_view> keys) const {
    const SystemFacts* system =
        facts_.treatment() != nullptr ? facts_.treatment() : facts_.baseline();
    return facts_.Environment(system, keys);
  }

  void WriteKeys() {
    Pair("Model", Of({"model", "models"}));
    Pair("Framework", Of({"framework", "engine", "engine_version", "server_version"}));
    Pair("Speculative", Of({"speculative", "speculative_config", "speculation"}));
    Pair("Quantization", Of({"quantization"}));
    Pair("Hardware", Of({"hardware"}));
    Pair("Topology", Of({"topology"}));
    Pair("block-size", Of({"block-size", "block_size"}));
    Pair("max-model-len", Of({"max-model-len", "max_model_len"}));
    Pair("Benchmark", Benchmark());
    Pair("Test Date", TestDate());
  }

  std::string Benchmark() const {
    if (std::string told = Of({"benchmark", "tool"}); !told.empty()) return told;
    std::set<std::string> tools;
    for (const CellFacts& cell : facts_.comparison().cells) {
      for (const Provenance& file : cell.provenance) {
        tools.insert(file.version.empty() ? file.kind : absl::StrCat(file.kind, " ", file.version));
      }
    }
    return absl::StrJoin(tools, ", ");
  }

  std::string TestDate() const {
    if (std::string told = Of({"test_date", "date"}); !told.empty()) return told;
    const auto span = facts_.Span();
    if (!span) return "";
    const std::string first = UtcDate(span->first);
    const std::string last = UtcDate(span->second);
    return first == last ? first : absl::StrCat(first, " – ", last);
  }

  void WriteNames() {
    ++row_;
    Name("reg_threshold", context_.Say(workbook::kThreshold), facts_.comparison().threshold,
         Look::kShare);
    Name("devices_baseline", context_.Say(workbook::kDevicesBaseline), Devices(facts_.baseline()),
         Look::kInteger);
    Name("devices_treatment", context_.Say(workbook::kDevicesTreatment),
         Devices(facts_.treatment()), Look::kInteger);
  }

  static std::optional<double> Devices(const SystemFacts* system) {
    if (system == nullptr || !system->devices) return std::nullopt;
    return static_cast<double>(*system->devices);
  }

  void Name(const std::string& name, const std::string& label, std::optional<double> value,
            Look look) {
    context_.book.DefineName(name, absl::StrCat("=", sheet_.name(), "!$B$", row_ + 1));
    sheet_.Text(row_, 0, label, Look::kLabel);
    sheet_.Number(row_, 1, value, look);
    sheet_.Text(row_++, 2, name, Look::kText);
  }

  void WriteEnvironment() {
    const SystemFacts* baseline = facts_.baseline();
    const SystemFacts* treatment = facts_.treatment();
    Header({context_.Say(workbook::kDifferences), baseline ? baseline->label : "",
            treatment ? treatment->label : "", ""});
    std::set<std::string> differing;
    for (const Confounder& confounder : facts_.comparison().confounders) {
      differing.insert(confounder.key);
      Line({confounder.key, confounder.baseline, confounder.treatment,
            context_.Say(workbook::kConfounder)},
           Look::kBad);
    }
    std::set<std::string> keys;
    for (const SystemFacts* system : {baseline, treatment}) {
      if (system == nullptr) continue;
      for (const auto& [key, value] : system->environment) keys.insert(key);
    }
    for (const std::string& key : keys) {
      if (differing.contains(key)) continue;
      Line({key, facts_.Environment(baseline, {key}), facts_.Environment(treatment, {key}), ""},
           Look::kWrapped);
    }
  }

  void WriteProblems() {
    Header({context_.Say(workbook::kProblems), ""});
    const auto& problems = facts_.comparison().problems;
    if (problems.empty()) Line({"", context_.Say(workbook::kNothingMissing)}, Look::kWrapped);
    for (size_t i = 0; i < problems.size(); ++i) {
      Line({absl::StrCat(i + 1), problems[i]}, Look::kWrapped);
    }
  }

  void WriteLint() {
    Header({context_.Say(workbook::kLint), "", "", "", ""});
    bool clean = true;
    for (const CellFacts& cell : facts_.comparison().cells) {
      for (const LintFinding& finding : cell.lint) {
        if (finding.severity == Severity::kPass) continue;
        clean = false;
        Line({fmt::format("{} {}", finding.rule, SeverityName(finding.severity)), finding.text,
              absl::StrCat(cell.system, ", ", cell.scenario, " ",
                           ConcurrencyName(cell.concurrency))},
             finding.severity == Severity::kFail ? Look::kBad : Look::kWrapped);
      }
    }
    if (clean) Line({"", context_.Say(workbook::kLintClean)}, Look::kWrapped);
  }

  void WriteTrials() {
    if (facts_.comparison().trials.empty()) return;
    Header({context_.Say(workbook::kTrials), "", "", "", ""});
    for (const Trial& trial : facts_.comparison().trials) {
      const std::string delta =
          trial.delta_percent ? fmt::format("{:+.1f} %", *trial.delta_percent) : "";
      const std::string errors = trial.errors ? absl::StrCat(*trial.errors, " errors") : "";
      Line({trial.id, trial.change, absl::StrCat(trial.tag, delta.empty() ? "" : " ", delta),
            trial.decision, absl::StrCat(trial.reason, errors.empty() ? "" : "; ", errors)},
           Look::kWrapped);
    }
  }

  void WriteProvenance() {
    Header({context_.Say(workbook::kProvenance), "SHA-256", "", ""});
    std::set<std::string> listed;
    for (const SystemFacts* system : facts_.systems()) {
      if (!system->source.empty()) Line({system->label, system->source}, Look::kWrapped);
    }
    for (const CellFacts& cell : facts_.comparison().cells) {
      for (const Provenance& file : cell.provenance) {
        if (!listed.insert(file.path + file.sha256).second) continue;
        Line({file.path, file.sha256, absl::StrCat(file.kind, " ", file.version), ""},
             Look::kWrapped);
      }
    }
  }

  const WorkbookContext& context_;
  const Facts& facts_;
  Sheet& sheet_;
  uint32_t row_ = 0;
};

}  // namespace

void WriteConfigSheet(const WorkbookContext& context, Sheet sheet) {
  ConfigSheet(context, sheet).Write();
}

}  // namespace fulgur::bench

#include "bench/trial/trial_files.h"

#include "absl/strings/str_replace.h"
#include "base/status_macros.h"
#include "bench/results/contrast.h"
#include "bench/results/text_file.h"
#include "bench/results/trials.h"
#include "fmt/format.h"
#include "fmt/ranges.h"
#include "nlohmann/json.hpp"

namespace fulgur::bench {
namespace {

using Json = nlohmann::ordered_json;

DecisionRule RuleOf(const TrialPlan& plan) {
  return {.larger_is_better = LargerIsBetter(plan.metric),
          .threshold = plan.threshold,
          .rounds = plan.Rounds()};
}

std::string_view VerdictWord(Verdict verdict) {
  switch (verdict) {
    case Verdict::kImproved:
      return "better";
    case Verdict::kRegression:
      return "worse";
    case Verdict::kNeutral:
      return "equal";
    default:
      return "within noise";
  }
}

std::string Percent(const std::optional<Gain>& gain) {
  return gain ? fmt::format("{:+.1f} %", PercentOf(gain->value)) : "n/a";
}

std::string Range(const std::optional<Gain>& gain) {
  if (!gain || !gain->interval) return "n/a";
  return fmt::format("{:+.1f} to {:+.1f} %", PercentOf(gain->interval->low),
                     PercentOf(gain->interval->high));
}

// A sentence as one line of a table; the rest of a log's tail is in the list of runs.
std::string TableText(const std::string& text) {
  const std::string line = text.substr(0, text.find('\n'));
  return absl::StrReplaceAll(line, {{"|", "\\|"}});
}

void SetGain(Json& json, const std::optional<Gain>& gain) {
  if (!gain) return;
  json["delta_percent"] = PercentOf(gain->value);
  if (!gain->interval) return;
  json["interval_percent"] = {PercentOf(gain->interval->low), PercentOf(gain->interval->high)};
}

Json TrialJson(const TrialPlan& plan, const DecidedVariant& entry) {
  const Decision& decision = entry.decision;
  Json json = {{"id", entry.variant.id}, {"change", entry.variant.change}, {"tag", plan.metric}};
  SetGain(json, decision.gain);
  if (decision.requests > 0) {
    json["errors"] = decision.failed;
    json["requests"] = decision.requests;
  }
  json["decision"] = decision.decision;
  json["reason"] = decision.reason;
  json["set"] = entry.variant.set;
  json["cells"] = Json::array();
  for (const CellGain& cell : decision.cells) {
    Json one = {{"cell", cell.cell}, {"base", cell.base}, {"variant", cell.variant}};
    SetGain(one, cell.gain);
    one["verdict"] = VerdictWord(cell.verdict);
    json["cells"].push_back(std::move(one));
  }
  return json;
}

Json RunJson(const std::string& name, const MeasuredRun& run) {
  Json json = {{"run", name},
               {"variant", run.variant.empty() ? "base" : run.variant},
               {"values", run.values},
               {"requests", run.requests},
               {"errors", run.failed}};
  if (!run.invalid.empty()) json["invalid"] = run.invalid;
  if (!run.not_started.empty()) json["not_started"] = run.not_started;
  return json;
}

Json TrialsJson(const TrialPlan& plan, const SeriesResult& series,
                const std::vector<DecidedVariant>& decided) {
  Json json = {{"format", kTrialsFormat},
               {"metric", plan.metric},
               {"threshold_percent", plan.threshold * 100},
               {"rounds", plan.Rounds()},
               {"interrupted", series.interrupted},
               {"base", plan.base},
               {"load", plan.run}};
  if (const auto noise = BaseNoise(series.runs)) json["base_noise_percent"] = *noise * 100;
  if (!series.ended.ok()) json["ended_early"] = std::string(series.ended.message());
  json["trials"] = Json::array();
  for (const DecidedVariant& entry : decided) json["trials"].push_back(TrialJson(plan, entry));
  json["runs"] = Json::array();
  for (size_t i = 0; i < series.runs.size(); ++i) {
    json["runs"].push_back(RunJson(series.names[i], series.runs[i]));
  }
  return json;
}

std::string DecisionTable(const std::vector<DecidedVariant>& decided) {
  std::string text =
      "| Change | Decision | Difference | 95 % interval | Failed requests | Why |\n"
      "|---|---|---|---|---|---|\n";
  for (const auto& [variant, decision] : decided) {
    text += fmt::format("| {} | {} | {} | {} | {} | {} |\n", TableText(variant.change),
                        decision.decision, Percent(decision.gain), Range(decision.gain),
                        decision.requests == 0
                            ? "n/a"
                            : fmt::format("{} of {}", decision.failed, decision.requests),
                        TableText(decision.reason));
  }
  return text;
}

std::string CellTable(const std::vector<DecidedVariant>& decided) {
  std::string text =
      "| Change | Cell | Base | Variant | Difference | 95 % interval | |\n"
      "|---|---|---|---|---|---|---|\n";
  for (const auto& [variant, decision] : decided) {
    for (const CellGain& cell : decision.cells) {
      text += fmt::format("| {} | {} | {:.2f} | {:.2f} | {} | {} | {} |\n", variant.id, cell.cell,
                          cell.base, cell.variant, Percent(cell.gain), Range(cell.gain),
                          VerdictWord(cell.verdict));
    }
  }
  return text;
}

std::string Method(const TrialPlan& plan, const SeriesResult& series) {
  std::string text = fmt::format(
      "Metric: `{}`; above 0 is better. Order of the runs: {}. A variant is compared with the base "
      "runs beside it, so that a slow drift cancels. Intervals come from how much successive base "
      "runs differ",
      plan.metric, fmt::join(series.names, ", "));
  if (const auto noise = BaseNoise(series.runs)) {
    text += fmt::format(": {:.1f} % is one standard deviation of a run's mean over the cells",
                        *noise * 100);
  }
  text += fmt::format(
      ". Accepted is what is better by {:g} % or more, outside the noise, with no cell worse and "
      "not more failures than the base (Fisher's exact test at 1 %).\n",
      plan.threshold * 100);
  if (series.interrupted)
    text += "\nThe trial was interrupted; this is what was measured so far.\n";
  if (!series.ended.ok()) {
    text += fmt::format("\nIt ended early: {}\n", std::string(series.ended.message()));
  }
  return text;
}

std::string FailedStarts(const SeriesResult& series) {
  std::string text;
  for (size_t i = 0; i < series.runs.size(); ++i) {
    if (series.runs[i].not_started.empty()) continue;
    text += fmt::format("\n### {}\n\n```\n{}\n```\n", series.names[i], series.runs[i].not_started);
  }
  return text.empty() ? text : "\n## Servers that did not start\n" + text;
}

}  // namespace

std::vector<DecidedVariant> DecideAll(const TrialPlan& plan, const SeriesResult& series) {
  std::vector<DecidedVariant> decided;
  for (const Variant& variant : plan.variants) {
    decided.push_back({variant, Decide(series.runs, variant.id, RuleOf(plan))});
  }
  return decided;
}

std::string TrialMarkdown(const TrialPlan& plan, const SeriesResult& series,
                          const std::vector<DecidedVariant>& decided) {
  return fmt::format("# Single-factor trials\n\n{}\n## Cells\n\n{}\n## How it was decided\n\n{}{}",
                     DecisionTable(decided), CellTable(decided), Method(plan, series),
                     FailedStarts(series));
}

absl::Status WriteTrialFiles(const TrialPlan& plan, const SeriesResult& series,
                             const std::vector<DecidedVariant>& decided,
                             const std::filesystem::path& folder) {
  const Json json = TrialsJson(plan, series, decided);
  // Logs may hold any bytes; those that are no UTF-8 are replaced.
  const std::string text = json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
  RETURN_IF_ERROR(WriteTextFile(folder / "trials.json", text));
  return WriteTextFile(folder / "trials.md", TrialMarkdown(plan, series, decided));
}

}  // namespace fulgur::bench

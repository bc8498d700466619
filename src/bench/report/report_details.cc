// Sections 5 and 9 to 14: utilisation, speculation, accuracy, method, validity, reproduction,
// percentiles.
#include <algorithm>
#include <functional>
#include <map>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "bench/report/report_sections.h"
#include "bench/report/report_texts.h"
#include "bench/results/metric_names.h"
#include "fmt/format.h"

namespace fulgur::bench {
namespace {

constexpr double kMbPerGb = 1024.0;

using SummaryNumber = std::function<std::optional<double>(const UtilisationSummary&)>;

struct SummaryRow {
  const Text& label;
  int digits;
  SummaryNumber number;
};

std::optional<double> Gigabytes(std::optional<double> mb) {
  return mb ? std::optional(*mb / kMbPerGb) : std::nullopt;
}

std::vector<SummaryRow> SummaryRows() {
  using U = UtilisationSummary;
  return {{report::kSamples, 0, [](const U& u) { return static_cast<double>(u.samples); }},
          {report::kBusyAvg, 1, [](const U& u) { return u.busy_avg; }},
          {report::kBusyMax, 0, [](const U& u) { return u.busy_max; }},
          {report::kMemoryAvg, 1, [](const U& u) { return Gigabytes(u.device_memory_avg_mb); }},
          {report::kCpuAvg, 1, [](const U& u) { return u.cpu_avg_percent; }},
          {report::kHostMemory, 1, [](const U& u) { return Gigabytes(u.host_memory_used_mb); }},
          {report::kHostUnavailable, 1,
           [](const U& u) { return Gigabytes(u.host_memory_unavailable_mb); }},
          {report::kPower, 1, [](const U& u) { return u.power_avg_w; }}};
}

Table SystemUtilisation(const ReportContext& context) {
  Table table;
  table.caption = context.say(report::kWholeLog);
  table.header = {context.say(report::kMetric)};
  std::vector<const SystemFacts*> systems;
  for (const SystemFacts* system : context.facts.systems()) {
    if (!system->utilisation) continue;
    systems.push_back(system);
    table.header.push_back(system->label);
  }
  if (systems.empty()) return table;
  const bool change = systems.size() == 2;
  if (change) table.header.push_back(context.say(report::kChange));
  for (const SummaryRow& line : SummaryRows()) {
    std::vector<TableCell> row = {{context.say(line.label), Tone::kPlain}};
    std::vector<std::optional<double>> values;
    for (const SystemFacts* system : systems) {
      values.push_back(line.number(*system->utilisation));
      row.push_back({Fixed(values.back(), line.digits), Tone::kPlain});
    }
    if (change) {
      const bool told = values[0] && values[1] && &line.label != &report::kSamples;
      row.push_back({told ? fmt::format("{:+.{}f}", *values[1] - *values[0], line.digits)
                          : std::string(kAbsent),
                     Tone::kPlain});
    }
    table.rows.push_back(std::move(row));
  }
  return table;
}

bool AnyBusy(const Facts& facts) {
  const auto systems = facts.systems();
  return std::any_of(systems.begin(), systems.end(), [](const SystemFacts* system) {
    return system->utilisation && system->utilisation->busy_avg;
  });
}

Table CellUtilisation(const ReportContext& context) {
  using U = UtilisationSummary;
  const std::vector<SummaryRow> columns = {
      {report::kSamples, 0, [](const U& u) { return static_cast<double>(u.samples); }},
      {report::kBusyAvg, 1, [](const U& u) { return u.busy_avg; }},
      {report::kCpuAvg, 1, [](const U& u) { return u.cpu_avg_percent; }},
      {report::kHostUnavailable, 1,
       [](const U& u) { return Gigabytes(u.host_memory_unavailable_mb); }},
      {report::kPower, 1, [](const U& u) { return u.power_avg_w; }},
      {report::kJoulesPerToken, 3, [](const U& u) { return u.joules_per_output_token; }},
      {report::kTokensPerBusy, 2, [](const U& u) { return u.tokens_per_busy_device_second; }}};
  Table table;
  table.caption = context.say(report::kInsideCells);
  table.text_columns = 3;
  table.header = {context.say(report::kScenario), "C", context.say(report::kSystem)};
  for (const SummaryRow& column : columns) table.header.push_back(context.say(column.label));
  for (const Place& place : context.facts.places()) {
    for (const SystemFacts* system : context.facts.systems()) {
      const CellFacts* cell = context.facts.Cell(system, place);
      if (cell == nullptr || !cell->utilisation) continue;
      std::vector<TableCell> row = {
          {context.facts.ScenarioLabel(*place.scenario, context.say.language()), Tone::kPlain},
          {ConcurrencyName(place.concurrency), Tone::kPlain},
          {system->label, Tone::kPlain}};
      for (const SummaryRow& column : columns) {
        row.push_back({Fixed(column.number(*cell->utilisation), column.digits), Tone::kPlain});
      }
      table.rows.push_back(std::move(row));
    }
  }
  return table;
}

Table SpeculationTable(const ReportContext& context) {
  Table table;
  table.text_columns = 3;
  table.header = {context.say(report::kScenario),       "C",
                  context.say(report::kSystem),         context.say(report::kAcceptanceLength),
                  context.say(report::kAcceptanceRate), context.say(report::kTokensPerChunk),
                  context.say(report::kRepetition)};
  const Facts& facts = context.facts;
  for (const Place& place : facts.places()) {
    for (const SystemFacts* system : facts.systems()) {
      table.rows.push_back(
          {{facts.ScenarioLabel(*place.scenario, context.say.language()), Tone::kPlain},
           {ConcurrencyName(place.concurrency), Tone::kPlain},
           {system->label, Tone::kPlain},
           {Fixed(facts.AcceptanceLength(system, place), 2), Tone::kPlain},
           {Fixed(facts.AcceptancePercent(system, place), 1), Tone::kPlain},
           {Fixed(facts.Value(system, place, "fulgur_tokens_per_chunk"), 2), Tone::kPlain},
           {Fixed(facts.Value(system, place, "fulgur_output_repetition"), 2), Tone::kPlain}});
    }
  }
  return table;
}

Table TrialTable(const ReportContext& context) {
  Table table;
  table.text_columns = 2;
  table.caption = context.say(report::kTrials);
  table.header = {context.say(report::kTrialChange), context.say(report::kDecision),
                  context.say(report::kDeltaPercent), context.say(report::kErrors),
                  context.say(report::kReason)};
  for (const Trial& trial : context.facts.comparison().trials) {
    table.rows.push_back(
        {{trial.change, Tone::kPlain},
         {trial.decision, Tone::kPlain},
         {SignedPercent(trial.delta_percent, 1), Tone::kPlain},
         {trial.errors ? absl::StrCat(*trial.errors) : std::string(kAbsent), Tone::kPlain},
         {trial.reason, Tone::kPlain}});
  }
  table.text_columns = table.header.size();
  return table;
}

Table CellTable(const ReportContext& context) {
  Table table;
  table.caption = context.say(report::kCells);
  table.text_columns = 3;
  table.header = {context.say(report::kScenario), "C",
                  context.say(report::kSystem),   context.say(report::kRequestsOk),
                  context.say(report::kErrors),   context.say(report::kValid),
                  context.say(report::kWhy)};
  for (const Place& place : context.facts.places()) {
    for (const SystemFacts* system : context.facts.systems()) {
      const CellFacts* cell = context.facts.Cell(system, place);
      if (cell == nullptr) continue;
      std::string errors = cell->errors ? absl::StrCat(*cell->errors) : std::string(kAbsent);
      if (!cell->errors_by_code.empty()) absl::StrAppend(&errors, " (", ErrorCodes(*cell), ")");
      table.rows.push_back(
          {{context.facts.ScenarioLabel(*place.scenario, context.say.language()), Tone::kPlain},
           {ConcurrencyName(place.concurrency), Tone::kPlain},
           {system->label, Tone::kPlain},
           {cell->requests ? absl::StrCat(*cell->requests) : std::string(kAbsent), Tone::kPlain},
           {errors, Tone::kPlain},
           {context.say(cell->valid ? report::kYes : report::kNo),
            cell->valid ? Tone::kPlain : Tone::kBad},
           {absl::StrJoin(cell->reasons, " "), Tone::kPlain}});
    }
  }
  return table;
}

// Findings of the checks, equal ones of several cells together.
Table LintTable(const ReportContext& context) {
  struct Group {
    const LintFinding* finding;
    std::vector<std::string> places;
  };
  std::map<std::string, Group> groups;
  for (const SystemFacts* system : context.facts.systems()) {
    for (const Place& place : context.facts.places()) {
      const CellFacts* cell = context.facts.Cell(system, place);
      if (cell == nullptr) continue;
      for (const LintFinding& finding : cell->lint) {
        if (finding.severity == Severity::kPass) continue;
        Group& group = groups[finding.rule + finding.text];
        group.finding = &finding;
        group.places.push_back(absl::StrCat(system->label, ", ", context.Label(place)));
      }
    }
  }
  Table table;
  table.header = {context.say(report::kRule), context.say(report::kSeverity),
                  context.say(report::kFinding), context.say(report::kCells)};
  table.text_columns = table.header.size();
  for (const auto& [key, group] : groups) {
    const bool failed = group.finding->severity == Severity::kFail;
    table.rows.push_back({{group.finding->rule, Tone::kPlain},
                          {context.say(failed ? report::kFail : report::kWarn),
                           failed ? Tone::kBad : Tone::kWarning},
                          {group.finding->text, Tone::kPlain},
                          {absl::StrJoin(group.places, "; "), Tone::kPlain}});
  }
  return table;
}

void AddConfounders(ReportContext& context) {
  context.document.Add(Heading{3, "confounders", context.say(report::kConfounders)});
  const auto& confounders = context.facts.comparison().confounders;
  if (confounders.empty()) {
    context.Say(report::kNoConfounder);
    return;
  }
  Table table;
  table.header = {context.say(report::kProperty), context.Label(context.facts.baseline()),
                  context.Label(context.facts.treatment())};
  table.text_columns = 3;
  const auto told = [&](const std::string& value) {
    return TableCell{value.empty() ? context.say(report::kNotKnown) : value, Tone::kWarning};
  };
  for (const Confounder& confounder : confounders) {
    table.rows.push_back(
        {{confounder.key, Tone::kPlain}, told(confounder.baseline), told(confounder.treatment)});
  }
  context.document.Add(std::move(table));
}

std::string MetricTitle(const std::string& tag, const MetricBlock& block) {
  return MetricNameWithUnit(tag, block.unit);
}

Table PercentileTable(const ReportContext& context, const SystemFacts& system,
                      const std::string& tag) {
  Table table;
  table.text_columns = 2;
  table.header = {context.say(report::kScenario), "C",   context.say(report::kRequestCount),
                  context.say(report::kMean),     "std", "min"};
  for (int percentile : kPercentiles) table.header.push_back(absl::StrCat("p", percentile));
  table.header.push_back("max");
  for (const Place& place : context.facts.places()) {
    const CellFacts* cell = context.facts.Cell(&system, place);
    if (cell == nullptr) continue;
    const auto found = cell->metrics.find(tag);
    if (found == cell->metrics.end() || found->second.percentiles.empty()) continue;
    const MetricBlock& block = found->second;
    table.caption = absl::StrCat(system.label, ": ", MetricTitle(tag, block));
    std::vector<TableCell> row = {
        {context.facts.ScenarioLabel(*place.scenario, context.say.language()), Tone::kPlain},
        {ConcurrencyName(place.concurrency), Tone::kPlain},
        {block.count ? absl::StrCat(*block.count) : std::string(kAbsent), Tone::kPlain},
        {Fixed(block.avg, 2), Tone::kPlain},
        {Fixed(block.std, 2), Tone::kPlain},
        {Fixed(block.min, 2), Tone::kPlain}};
    for (int percentile : kPercentiles) {
      const auto value = block.percentiles.find(percentile);
      row.push_back(
          {value == block.percentiles.end() ? std::string(kAbsent) : Fixed(value->second, 2),
           Tone::kPlain});
    }
    row.push_back({Fixed(block.max, 2), Tone::kPlain});
    table.rows.push_back(std::move(row));
  }
  return table;
}

}  // namespace

void AddUtilisation(ReportContext& context) {
  context.Section("utilisation", report::kUtilisation);
  const bool whole = context.Show(SystemUtilisation(context));
  const bool cells = context.Show(CellUtilisation(context));
  if (!whole && !cells) {
    context.Say(report::kNotMeasured);
    return;
  }
  if (AnyBusy(context.facts)) context.Say(report::kBusyMeaning);
  context.Show(UtilisationFigure(context.figures()));
}

void AddSpeculation(ReportContext& context) {
  context.Section("speculation", report::kSpeculation);
  if (context.Show(SpeculationTable(context))) {
    context.Say(report::kAcceptanceNote);
  } else {
    context.Say(report::kNotMeasured);
  }
  context.Show(AcceptanceFigure(context.figures()));
  if (!context.facts.comparison().trials.empty()) context.document.Add(TrialTable(context));
}

void AddAccuracy(ReportContext& context) {
  context.Section("accuracy", report::kAccuracy);
  if (context.input.accuracy.empty()) {
    context.Say(report::kNotMeasured);
    return;
  }
  Table table;
  table.text_columns = 2;
  table.header = {context.say(report::kDataset), context.say(report::kSystem),
                  context.say(report::kScore),   context.say(report::kInterval),
                  context.say(report::kItems),   context.say(report::kTruncated),
                  context.say(report::kUnparsed)};
  const auto count = [](std::optional<int64_t> value) {
    return TableCell{value ? absl::StrCat(*value) : std::string(kAbsent), Tone::kPlain};
  };
  for (const AccuracyScore& score : context.input.accuracy) {
    const SystemFacts* system = context.facts.comparison().FindSystem(score.system);
    const std::string interval =
        score.low && score.high ? absl::StrCat(Fixed(score.low, 1), " – ", Fixed(score.high, 1))
                                : std::string(kAbsent);
    table.rows.push_back({{score.dataset, Tone::kPlain},
                          {system != nullptr ? system->label : score.system, Tone::kPlain},
                          {Fixed(score.score, 2), Tone::kPlain},
                          {interval, Tone::kPlain},
                          count(score.items),
                          count(score.truncated),
                          count(score.unparsed)});
  }
  context.document.Add(std::move(table));
  context.Show(AccuracyFigure(context.figures()));
}

void AddMethod(ReportContext& context) {
  context.Section("method", report::kMethod);
  const std::string threshold = Fixed(context.facts.comparison().threshold * 100, 0);
  context.document.Add(
      BulletList{{context.say(report::kClosedLoop), context.say(report::kPerUserDefinition),
                  context.say(report::kItlDefinition), context.say(report::kTtftDefinition),
                  context.say(report::kPercentileDefinition),
                  context.say(report::kVerdictDefinition, {{"threshold", threshold}}),
                  context.say(report::kMeanDefinition)}});
}

void AddValidity(ReportContext& context) {
  context.Section("validity", report::kValidity);
  context.Show(CellTable(context));
  AddConfounders(context);
  context.document.Add(Heading{3, "checks", context.say(report::kChecks)});
  Table lint = LintTable(context);
  if (lint.rows.empty()) {
    context.Say(report::kChecksClean);
  } else {
    context.document.Add(std::move(lint));
  }
  context.document.Add(Heading{3, "missing", context.say(report::kMissing)});
  const auto& problems = context.facts.comparison().problems;
  if (problems.empty()) {
    context.Say(report::kNothingMissing);
  } else {
    context.document.Add(BulletList{problems});
  }
  context.Show(RequestFigure(context.figures()));
}

void AddReproduction(ReportContext& context) {
  context.Section("reproduction", report::kReproduction);
  if (!context.input.command.empty()) {
    context.Say(report::kCommand);
    context.document.Add(CodeBlock{context.input.command});
  }
  Table table;
  table.header = {context.say(report::kFile), context.say(report::kTool), "SHA-256"};
  table.text_columns = 3;
  std::set<std::string> listed;
  for (const CellFacts& cell : context.facts.comparison().cells) {
    for (const Provenance& file : cell.provenance) {
      if (!listed.insert(file.path + file.sha256).second) continue;
      table.rows.push_back({{file.path, Tone::kPlain},
                            {absl::StrCat(file.kind, " ", file.version), Tone::kPlain},
                            {file.sha256, Tone::kPlain}});
    }
  }
  if (!table.rows.empty()) context.document.Add(std::move(table));
}

void AddAppendix(ReportContext& context) {
  context.Section("appendix", report::kAppendix);
  bool any = false;
  for (const char* tag : {"time_to_first_token", "inter_token_latency", "inter_chunk_latency",
                          "request_latency", "output_token_throughput_per_user"}) {
    for (const SystemFacts* system : context.facts.systems()) {
      Table table = PercentileTable(context, *system, tag);
      if (table.rows.empty()) continue;
      any = true;
      context.document.Add(std::move(table));
    }
  }
  if (!any) context.Say(report::kNotMeasured);
}

}  // namespace fulgur::bench

// Sections 0 to 4 and 6 to 8: what was measured, and what it says.
#include <algorithm>
#include <map>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "bench/report/finding_texts.h"
#include "bench/report/report_sections.h"
#include "bench/report/report_texts.h"

namespace fulgur::bench {
namespace {

size_t CellsOf(const Facts& facts, const SystemFacts* system) {
  const auto& cells = facts.comparison().cells;
  return static_cast<size_t>(std::count_if(cells.begin(), cells.end(), [&](const CellFacts& cell) {
    return system != nullptr && cell.system == system->id;
  }));
}

std::string TestedLine(const ReportContext& context) {
  const Facts& facts = context.facts;
  std::vector<std::string> scenarios, concurrencies;
  for (const ScenarioFacts& scenario : facts.comparison().scenarios) {
    scenarios.push_back(facts.ScenarioLabel(scenario, context.say.language()));
  }
  for (int64_t concurrency : facts.comparison().concurrencies) {
    concurrencies.push_back(ConcurrencyName(concurrency).substr(1));
  }
  const std::string where = context.say.List(scenarios);
  const std::string at = context.say.List(concurrencies);
  if (facts.baseline() != nullptr && facts.treatment() != nullptr) {
    return context.say(report::kTested,
                       {{"scenarios", where},
                        {"concurrencies", at},
                        {"cells", absl::StrCat(CellsOf(facts, facts.baseline()))},
                        {"baseline", context.Label(facts.baseline())},
                        {"others", absl::StrCat(CellsOf(facts, facts.treatment()))},
                        {"treatment", context.Label(facts.treatment())}});
  }
  const SystemFacts* system = facts.systems().empty() ? nullptr : facts.systems().front();
  return context.say(report::kTestedOne, {{"scenarios", where},
                                          {"concurrencies", at},
                                          {"cells", absl::StrCat(CellsOf(facts, system))},
                                          {"system", context.Label(system)}});
}

std::string VerdictLine(const ReportContext& context) {
  std::map<Verdict, int> counts;
  for (const Place& place : context.facts.places()) {
    const Contrast* contrast = context.facts.Find(place);
    ++counts[contrast != nullptr ? contrast->verdict : Verdict::kNotAvailable];
  }
  return context.say(report::kVerdictCounts,
                     {{"threshold", Fixed(context.facts.comparison().threshold * 100, 0)},
                      {"improved", absl::StrCat(counts[Verdict::kImproved])},
                      {"neutral", absl::StrCat(counts[Verdict::kNeutral])},
                      {"regressions", absl::StrCat(counts[Verdict::kRegression])},
                      {"noise", absl::StrCat(counts[Verdict::kNoise])},
                      {"missing", absl::StrCat(counts[Verdict::kNotAvailable])}});
}

std::string MeansLine(const ReportContext& context) {
  std::vector<std::string> means;
  for (const SpeedupMean& mean : context.facts.comparison().means) {
    if (mean.scenario.empty()) {
      means.push_back(context.say(report::kOverall, {{"mean", Times(mean.mean)}}));
      continue;
    }
    for (const ScenarioFacts& scenario : context.facts.comparison().scenarios) {
      if (scenario.id != mean.scenario) continue;
      means.push_back(absl::StrCat(context.facts.ScenarioLabel(scenario, context.say.language()),
                                   " ", Times(mean.mean)));
    }
  }
  return means.empty() ? "" : context.say(report::kMeans, {{"means", context.say.List(means)}});
}

std::string ErrorsLine(const ReportContext& context) {
  std::vector<std::string> list;
  bool known = false;
  for (const SystemFacts* system : context.facts.systems()) {
    int64_t errors = 0;
    for (const CellFacts& cell : context.facts.comparison().cells) {
      if (cell.system != system->id) continue;
      known = known || cell.errors.has_value();
      errors += cell.errors.value_or(0);
    }
    if (errors > 0) list.push_back(absl::StrCat(system->label, " ", errors));
  }
  if (!list.empty()) {
    return context.say(report::kFailedRequests, {{"list", context.say.List(list)}});
  }
  return context.say(known ? report::kNoFailedRequests : report::kErrorsUnknown);
}

TableCell LabelCell(const ReportContext& context, const Place& place) {
  return {context.facts.ScenarioLabel(*place.scenario, context.say.language()), Tone::kPlain};
}

TableCell ConcurrencyCell(const Place& place) {
  return {ConcurrencyName(place.concurrency), Tone::kPlain};
}

TableCell IntervalCell(const Contrast* contrast) {
  if (contrast == nullptr || !contrast->interval) return {std::string(kAbsent), Tone::kPlain};
  return {
      absl::StrCat(Fixed(contrast->interval->low, 2), " – ", Fixed(contrast->interval->high, 2)),
      Tone::kPlain};
}

Table HeadlineTable(const ReportContext& context) {
  const Facts& facts = context.facts;
  const bool both = facts.baseline() != nullptr && facts.treatment() != nullptr;
  Table table;
  table.text_columns = 2;
  table.header = {context.say(report::kScenario), "C"};
  for (const SystemFacts* system : facts.systems()) table.header.push_back(system->label);
  if (both) {
    table.header.insert(table.header.end(),
                        {context.say(report::kSpeedup), context.say(report::kInterval),
                         context.say(report::kVerdict)});
    for (const SystemFacts* reference : facts.references()) {
      table.header.push_back(context.say(
          report::kRatioTo,
          {{"treatment", context.Label(facts.treatment())}, {"system", reference->label}}));
    }
  }
  for (const Place& place : facts.places()) {
    std::vector<TableCell> row = {LabelCell(context, place), ConcurrencyCell(place)};
    for (const SystemFacts* system : facts.systems()) {
      row.push_back({Fixed(facts.Value(system, place, kHeadlineTag), 2), Tone::kPlain});
    }
    if (both) {
      const Contrast* contrast = facts.Find(place);
      const Tone tone = contrast != nullptr ? ToneOf(contrast->verdict) : Tone::kPlain;
      row.push_back({contrast != nullptr ? Times(contrast->speedup) : std::string(kAbsent), tone});
      row.push_back(IntervalCell(contrast));
      row.push_back({context.VerdictText(contrast), tone});
      for (const SystemFacts* reference : facts.references()) {
        const auto value = facts.Value(facts.treatment(), place, kHeadlineTag);
        const auto base = facts.Value(reference, place, kHeadlineTag);
        const bool can = value && base && *base > 0;
        row.push_back({can ? Times(*value / *base) : std::string(kAbsent), Tone::kPlain});
      }
    }
    table.rows.push_back(std::move(row));
  }
  return table;
}

std::string Reduction(std::optional<double> before, std::optional<double> after) {
  if (!before || !after || *before <= 0) return std::string(kAbsent);
  return SignedPercent((*after - *before) / *before * 100, 0);
}

struct LatencyColumn {
  const SystemFacts* system;
  const char* statistic;
};

// A latency of baseline and treatment by cell: means, their change, percentiles.
Table LatencyTable(const ReportContext& context, const char* tag, int digits) {
  const Facts& facts = context.facts;
  Table table;
  table.text_columns = 2;
  table.header = {context.say(report::kScenario), "C"};
  std::vector<const SystemFacts*> systems;
  for (const SystemFacts* system : {facts.baseline(), facts.treatment()}) {
    if (system != nullptr) systems.push_back(system);
  }
  std::vector<LatencyColumn> columns;
  for (const char* statistic : {"avg", "p50", "p99"}) {
    for (const SystemFacts* system : systems) {
      const bool any = std::any_of(
          facts.places().begin(), facts.places().end(),
          [&](const Place& place) { return facts.Value(system, place, tag, statistic); });
      if (!any) continue;
      const std::string name =
          statistic == std::string_view("avg") ? context.say(report::kMean) : statistic;
      table.header.push_back(absl::StrCat(system->label, " ", name));
      columns.push_back({system, statistic});
    }
  }
  const bool both = systems.size() == 2;
  if (both) table.header.push_back(context.say(report::kDeltaPercent));
  table.header.push_back(context.say(report::kRequestCount));
  for (const Place& place : facts.places()) {
    std::vector<TableCell> row = {LabelCell(context, place), ConcurrencyCell(place)};
    bool measured = false;
    for (const LatencyColumn& column : columns) {
      const auto value = facts.Value(column.system, place, tag, column.statistic);
      measured = measured || value;
      row.push_back({Fixed(value, digits), Tone::kPlain});
    }
    if (!measured) continue;
    if (both) {
      row.push_back({Reduction(facts.Value(facts.baseline(), place, tag),
                               facts.Value(facts.treatment(), place, tag)),
                     Tone::kPlain});
    }
    row.push_back({Fixed(facts.Requests(systems.empty() ? nullptr : systems.back(), place), 0),
                   Tone::kPlain});
    table.rows.push_back(std::move(row));
  }
  return table;
}

}  // namespace

void AddSummary(ReportContext& context) {
  context.Section("summary", report::kSummary);
  std::vector<std::string> lines = {TestedLine(context)};
  const auto findings = FindFindings(context.facts, context.input, context.say);
  for (const char* rule : {"best_cell", "regressions"}) {
    for (const Finding& finding : findings) {
      if (finding.rule == rule) lines.push_back(finding.text);
    }
  }
  if (context.facts.baseline() != nullptr && context.facts.treatment() != nullptr) {
    lines.push_back(VerdictLine(context));
    if (std::string means = MeansLine(context); !means.empty()) lines.push_back(means);
  }
  lines.push_back(ErrorsLine(context));
  const auto names = ConfounderNames(context.facts.comparison());
  if (!names.empty()) {
    lines.push_back(context.say(report::kConfounderLine, {{"list", context.say.List(names)}}));
  }
  const size_t problems = context.facts.comparison().problems.size();
  if (problems > 0) {
    lines.push_back(context.say(report::kProblemLine, {{"count", absl::StrCat(problems)}}));
  }
  context.document.Add(BulletList{lines});
}

void AddBackground(ReportContext& context) {
  context.Section("background", report::kBackground);
  const auto systems = context.facts.systems();
  Table table;
  table.header = {context.say(report::kProperty)};
  table.text_columns = systems.size() + 1;
  std::set<std::string> keys;
  for (const SystemFacts* system : systems) {
    table.header.push_back(system->label);
    for (const auto& [key, value] : system->environment) keys.insert(key);
  }
  for (const std::string& key : keys) {
    std::vector<TableCell> row = {{key, Tone::kPlain}};
    for (const SystemFacts* system : systems) {
      const std::string value = context.facts.Environment(system, {key});
      row.push_back({value.empty() ? std::string(kAbsent) : value, Tone::kPlain});
    }
    table.rows.push_back(std::move(row));
  }
  std::vector<TableCell> devices = {{context.say(report::kDevices), Tone::kPlain}};
  for (const SystemFacts* system : systems) {
    devices.push_back(
        {system->devices ? absl::StrCat(*system->devices) : std::string(kAbsent), Tone::kPlain});
  }
  table.rows.push_back(std::move(devices));
  context.document.Add(std::move(table));
  if (const auto span = context.facts.Span()) {
    context.Say(report::kWhenSpan,
                {{"start", UtcTime(span->first)}, {"end", UtcTime(span->second)}});
  }
  for (const SystemFacts* reference : context.facts.references()) {
    context.Say(report::kReferenceNote, {{"system", reference->label}});
    if (reference->source.empty()) continue;
    context.Say(report::kReferenceSource,
                {{"system", reference->label}, {"source", reference->source}});
  }
}

void AddThroughput(ReportContext& context) {
  context.Section("throughput", report::kThroughput);
  context.Say(report::kThroughputUnit);
  context.document.Add(HeadlineTable(context));
  context.Say(report::kDashMeans);
  const auto& places = context.facts.places();
  if (std::any_of(places.begin(), places.end(), [&](const Place& place) {
        const Contrast* contrast = context.facts.Find(place);
        return contrast != nullptr && contrast->speedup && contrast->note == "no variance";
      })) {
    context.Say(report::kNoVarianceNote);
  }
  context.Show(ThroughputFigure(context.figures()));
  context.Show(SpeedupFigure(context.figures()));
  context.Show(RepetitionFigure(context.figures()));
}

void AddItl(ReportContext& context) {
  context.Section("itl", report::kItl);
  context.Say(report::kItlUnit);
  if (!context.Show(LatencyTable(context, "inter_token_latency", 2))) {
    context.Say(report::kNotMeasured);
  }
  context.Show(TokenGapFigure(context.figures()));
}

void AddTtft(ReportContext& context) {
  context.Section("ttft", report::kTtft);
  context.Say(report::kTtftUnit);
  if (!context.Show(LatencyTable(context, "time_to_first_token", 1))) {
    context.Say(report::kNotMeasured);
  }
  context.Show(TtftFigure(context.figures()));
  context.Show(RateFigure(context.figures()));
  context.Show(LatencyPartsFigure(context.figures()));
  context.Show(PromptLengthFigure(context.figures()));
}

void AddFindings(ReportContext& context) {
  context.Section("findings", report::kFindings);
  const auto findings = FindFindings(context.facts, context.input, context.say);
  if (findings.empty()) context.Say(report::kNotMeasured);
  BulletList plain;
  for (const Finding& finding : findings) plain.items.push_back(finding.text);
  if (!plain.items.empty()) context.document.Add(plain);
}

void AddConclusion(ReportContext& context) {
  context.Section("conclusion", report::kConclusion);
  context.document.Add(BulletList{Advise(context.facts, context.say)});
}

void AddPareto(ReportContext& context) {
  context.Section("pareto", report::kPareto);
  Table table;
  table.text_columns = 3;
  const bool per_device = DevicesKnown(context.facts);
  table.header = {context.say(report::kScenario), "C", context.say(report::kSystem),
                  context.say(report::kPerUser), context.say(report::kSystemRate)};
  if (per_device) table.header.push_back(context.say(report::kPerDevice));
  table.header.push_back(context.say(report::kOnFront));
  for (const ScenarioFacts& scenario : context.facts.comparison().scenarios) {
    auto points = ParetoPoints(context.facts, scenario);
    std::stable_sort(points.begin(), points.end(), [](const auto& a, const auto& b) {
      return a.place.concurrency < b.place.concurrency;
    });
    for (const ParetoPoint& point : points) {
      std::vector<TableCell> row = {
          LabelCell(context, point.place),
          ConcurrencyCell(point.place),
          {point.system->label, Tone::kPlain},
          {Fixed(point.per_user, 2), Tone::kPlain},
          {Fixed(context.facts.SystemRate(point.system, point.place), 1), Tone::kPlain}};
      if (per_device) row.push_back({Fixed(point.throughput, 2), Tone::kPlain});
      row.push_back({point.on_front ? context.say(report::kYes) : "", Tone::kPlain});
      table.rows.push_back(std::move(row));
    }
  }
  if (!context.Show(std::move(table))) context.Say(report::kNotMeasured);
  context.Show(ParetoFigure(context.figures()));
  context.Show(TimelineFigure(context.figures()));
}

}  // namespace fulgur::bench

// Sheets 2 and 3: inter-token latency and time to first token.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "bench/report/workbook_sheets.h"
#include "bench/report/workbook_texts.h"

namespace fulgur::bench {
namespace {

constexpr char kItl[] = "inter_token_latency";
constexpr char kTtft[] = "time_to_first_token";

PlaceNumber Metric(const Facts& facts, const SystemFacts* system, const char* tag,
                   const char* statistic) {
  return [&facts, system, tag, statistic](const Place& place) {
    return facts.Value(system, place, tag, statistic);
  };
}

// (base - value) / base; a positive one is a gain for latencies.
PlaceNumber Reduction(const Facts& facts, const char* tag) {
  return [&facts, tag](const Place& place) -> std::optional<double> {
    const auto base = facts.Value(facts.baseline(), place, tag);
    const auto value = facts.Value(facts.treatment(), place, tag);
    if (!base || !value || *base <= 0) return std::nullopt;
    return (*base - *value) / *base;
  };
}

struct ChartPlace {
  uint32_t row = 0;
  uint16_t column = 0;
};

void LatencyChart(const WorkbookContext& context, Sheet& sheet, lxw_chart_type type,
                  const std::vector<uint16_t>& columns, const std::string& axis, bool logarithmic,
                  ChartPlace at) {
  if (context.facts.places().empty()) return;
  lxw_chart* chart = context.book.Chart(type);
  for (uint16_t column : columns) {
    const CellColumn values{sheet.name(), kFirstDataRow, context.last_row(), column};
    lxw_chart_series* series = AddSeries(chart, values, values, kHeaderRow, column);
    chart_series_set_categories(series, sheet.name().c_str(), kFirstDataRow, 0, context.last_row(),
                                1);
  }
  chart_axis_set_name(chart->y_axis, axis.c_str());
  if (logarithmic) chart_axis_set_log_base(chart->y_axis, 10);
  chart_legend_set_position(chart, LXW_CHART_LEGEND_BOTTOM);
  chart_show_blanks_as(chart, LXW_CHART_BLANKS_AS_GAP);
  sheet.Place(chart, at.row, at.column, 1.6, 1.2);
}

std::vector<SheetColumn> ItlColumns(const WorkbookContext& context) {
  const Facts& facts = context.facts;
  const std::string baseline = context.BaselineLabel();
  const std::string treatment = context.TreatmentLabel();
  const auto itl = [&](const std::string& system) {
    return context.Say(workbook::kItlOf, {{"system", system}});
  };
  std::vector<SheetColumn> columns = PlaceColumns(context);
  columns.push_back(NumberColumn(itl(baseline), 13, Look::kNumber2,
                                 Metric(facts, facts.baseline(), kItl, "avg")));
  columns.push_back(NumberColumn(itl(treatment), 13, Look::kNumber2,
                                 Metric(facts, facts.treatment(), kItl, "avg")));
  columns.push_back(
      FormulaColumn(context.Say(workbook::kReduction), 12, Look::kReduction,
                    "=IF(AND(ISNUMBER(C{r}),ISNUMBER(D{r}),C{r}>0),(C{r}-D{r})/C{r},\"\")",
                    Reduction(facts, kItl)));
  columns.push_back(EmptyColumn());
  const std::pair<const SystemFacts*, std::string> both[] = {{facts.baseline(), baseline},
                                                             {facts.treatment(), treatment}};
  for (const auto& [system, label] : both) {
    for (const char* percentile : {"p50", "p90", "p99"}) {
      columns.push_back(NumberColumn(
          context.Say(workbook::kItlPercentile, {{"system", label}, {"percentile", percentile}}),
          12, Look::kNumber2, Metric(facts, system, kItl, percentile)));
    }
  }
  for (const char* percentile : {"p50", "p99"}) {
    columns.push_back(NumberColumn(
        context.Say(workbook::kChunkGap, {{"system", treatment}, {"percentile", percentile}}), 12,
        Look::kNumber2, Metric(facts, facts.treatment(), "inter_chunk_latency", percentile)));
  }
  columns.push_back(
      NumberColumn(context.Say(workbook::kTokensPerChunk), 12, Look::kNumber2,
                   Metric(facts, facts.treatment(), "fulgur_tokens_per_chunk", "avg")));
  columns.push_back(
      NumberColumn(context.Say(workbook::kItlAfterFirst), 12, Look::kNumber2,
                   Metric(facts, facts.treatment(), "fulgur_itl_after_first_chunk", "avg")));
  columns.push_back(NumberColumn(context.Say(workbook::kMaxStall), 12, Look::kNumber2,
                                 Metric(facts, facts.treatment(), "fulgur_max_stall", "p99")));
  return columns;
}

std::vector<SheetColumn> TtftColumns(const WorkbookContext& context) {
  const Facts& facts = context.facts;
  const SystemFacts* treatment = facts.treatment();
  std::vector<SheetColumn> columns = PlaceColumns(context);
  const auto ttft = [&](const Text& header, const char* statistic) {
    return NumberColumn(context.Say(header), 10, Look::kNumber1,
                        Metric(facts, treatment, kTtft, statistic));
  };
  columns.push_back(ttft(workbook::kTtftAvg, "avg"));
  columns.push_back(ttft(workbook::kTtftP50, "p50"));
  columns.push_back(ttft(workbook::kTtftP99, "p99"));
  columns.push_back(EmptyColumn());
  for (const char* statistic : {"avg", "p50", "p99"}) {
    columns.push_back(
        NumberColumn(context.Say(workbook::kTtftOf,
                                 {{"system", context.BaselineLabel()}, {"statistic", statistic}}),
                     12, Look::kNumber1, Metric(facts, facts.baseline(), kTtft, statistic)));
  }
  columns.push_back(FormulaColumn(
      context.Say(workbook::kDeltaOfMean), 12, Look::kPercent,
      "=IF(AND(ISNUMBER(C{r}),ISNUMBER(G{r}),G{r}>0),(C{r}-G{r})/G{r},\"\")",
      [reduction = Reduction(facts, kTtft)](const Place& place) -> std::optional<double> {
        const auto value = reduction(place);
        if (!value) return std::nullopt;
        return -*value;
      }));
  columns.push_back(NumberColumn(context.Say(workbook::kPrefillRate), 12, Look::kNumber1,
                                 Metric(facts, treatment, "prefill_throughput_per_user", "avg")));
  columns.push_back(NumberColumn(context.Say(workbook::kQueueLag), 12, Look::kNumber1,
                                 Metric(facts, treatment, "credit_to_start_latency", "p99")));
  columns.push_back(NumberColumn(
      context.Say(workbook::kRequests), 8, Look::kInteger,
      [&facts, treatment](const Place& place) { return facts.Requests(treatment, place); }));
  columns.push_back(TextColumn(
      context.Say(workbook::kSmallSample), 10, Look::kText,
      [&context, treatment](const Place& place) {
        const auto n = context.facts.Requests(treatment, place);
        const bool small = n && *n < 100 && context.facts.Value(treatment, place, kTtft, "p99");
        return small ? context.Say(workbook::kBelowHundred) : std::string();
      }));
  return columns;
}

}  // namespace

void WriteItlSheet(const WorkbookContext& context, Sheet sheet) {
  sheet.Title(context.Say(workbook::kItlTitle), 4);
  WriteColumns(sheet, context, ItlColumns(context));
  const uint16_t reduction = 4;
  const std::string cell = absl::StrCat("E", kFirstDataRow + 1);
  sheet.Highlight(kFirstDataRow, context.last_row(), reduction,
                  absl::StrCat("=AND(ISNUMBER(", cell, "),", cell, ">=reg_threshold)"), true);
  sheet.Highlight(kFirstDataRow, context.last_row(), reduction,
                  absl::StrCat("=AND(ISNUMBER(", cell, "),", cell, "<=-reg_threshold)"), false);
  const uint32_t row = context.last_row() + 3;
  LatencyChart(context, sheet, LXW_CHART_COLUMN, {2, 3}, "ms", false, {row, 0});
  const auto& places = context.facts.places();
  const bool percentiles = std::any_of(places.begin(), places.end(), [&](const Place& place) {
    return context.facts.Value(context.facts.treatment(), place, kItl, "p50").has_value();
  });
  if (percentiles) {
    LatencyChart(context, sheet, LXW_CHART_LINE, {6, 8, 9, 11}, "ms", false, {row, 9});
  }
}

void WriteTtftSheet(const WorkbookContext& context, Sheet sheet) {
  sheet.Title(context.Say(workbook::kTtftTitle), 4);
  WriteColumns(sheet, context, TtftColumns(context));
  LatencyChart(context, sheet, LXW_CHART_COLUMN, {3, 4}, "ms", true, {context.last_row() + 3, 0});
}

}  // namespace fulgur::bench

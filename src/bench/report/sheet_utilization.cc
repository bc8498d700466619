// Sheet 4: what devices and host did, over the whole run and inside each cell.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "bench/report/workbook_sheets.h"
#include "bench/report/workbook_texts.h"
#include "fmt/format.h"

namespace fulgur::bench {
namespace {

constexpr uint32_t kCellHeaderRow = 12;
constexpr uint16_t kSeriesColumn = 26;  // AA
constexpr double kMbPerGb = 1024.0;

const UtilisationSummary* SummaryOf(const SystemFacts* system) {
  return system != nullptr && system->utilisation ? &*system->utilisation : nullptr;
}

using SummaryNumber = std::function<std::optional<double>(const UtilisationSummary&)>;

struct SummaryRow {
  const Text& label;
  Look look;
  SummaryNumber number;
  const Text* change = nullptr;  // how the note speaks of the difference
  int digits = 1;
  const char* formula = nullptr;  // {column} stands for B or C
};

class UtilizationSheet {
 public:
  UtilizationSheet(const WorkbookContext& context, Sheet& sheet)
      : context_(context), facts_(context.facts), sheet_(sheet) {}

  void Write() {
    sheet_.Title(context_.Say(workbook::kUtilizationTitle), 3);
    sheet_.Widths({20, 18, 14, 45, 19, 19, 8, 10, 10, 10, 10, 10, 12, 12, 10, 14, 10, 12, 14});
    sheet_.Freeze(kFirstDataRow, 2);
    sheet_.Height(kHeaderRow, kHeaderHeight);
    sheet_.Height(kCellHeaderRow, kHeaderHeight);
    WriteSummary();
    WriteCells();
    WriteSeries();
  }

 private:
  static std::vector<SummaryRow> SummaryRows() {
    using U = UtilisationSummary;
    return {{workbook::kSamples, Look::kInteger,
             [](const U& u) { return static_cast<double>(u.samples); }},
            {workbook::kAicoreAvg, Look::kNumber1, [](const U& u) { return u.busy_avg; },
             &workbook::kChangePoints},
            {workbook::kAicoreMax, Look::kInteger, [](const U& u) { return u.busy_max; }},
            {workbook::kHbmAvgMb, Look::kInteger, [](const U& u) { return u.device_memory_avg_mb; },
             &workbook::kChange, 0},
            {workbook::kHbmAvgGb, Look::kNumber1,
             [](const U& u) { return Gigabytes(u.device_memory_avg_mb); }, &workbook::kChange, 1,
             "=IF(ISNUMBER({column}7),{column}7/1024,\"\")"},
            {workbook::kCpuAvg, Look::kNumber1, [](const U& u) { return u.cpu_avg_percent; },
             &workbook::kChangePoints},
            {workbook::kHostMemory, Look::kNumber1,
             [](const U& u) { return Gigabytes(u.host_memory_used_mb); }, &workbook::kChange}};
  }

  static std::optional<double> Gigabytes(std::optional<double> mb) {
    if (!mb) return std::nullopt;
    return *mb / kMbPerGb;
  }

  void WriteSummary() {
    const SystemFacts* both[] = {facts_.baseline(), facts_.treatment()};
    sheet_.Text(kHeaderRow, 0, context_.Say(workbook::kMetric), Look::kHeader);
    for (uint16_t i = 0; i < 2; ++i) {
      sheet_.Text(kHeaderRow, static_cast<uint16_t>(i + 1),
                  both[i] != nullptr ? both[i]->label : std::string(kAbsent), Look::kHeader);
    }
    sheet_.Text(kHeaderRow, 3, context_.Say(workbook::kNote), Look::kHeader);
    uint32_t row = kFirstDataRow;
    for (const SummaryRow& line : SummaryRows()) {
      sheet_.Text(row, 0, context_.Say(line.label), Look::kLabel);
      std::optional<double> values[2];
      for (uint16_t i = 0; i < 2; ++i) {
        const UtilisationSummary* summary = SummaryOf(both[i]);
        if (summary != nullptr) values[i] = line.number(*summary);
        WriteSummaryNumber(row, static_cast<uint16_t>(i + 1), line, values[i]);
      }
      sheet_.Text(row, 3, NoteOf(line, values[0], values[1]), Look::kText);
      ++row;
    }
  }

  void WriteSummaryNumber(uint32_t row, uint16_t column, const SummaryRow& line,
                          std::optional<double> value) {
    if (line.formula == nullptr) {
      sheet_.Number(row, column, value, line.look);
      return;
    }
    std::string formula = line.formula;
    for (size_t at = formula.find("{column}"); at != std::string::npos;
         at = formula.find("{column}")) {
      formula.replace(at, 8, ColumnName(column));
    }
    sheet_.Formula(row, column, formula, value, line.look);
  }

  std::string NoteOf(const SummaryRow& line, std::optional<double> before,
                     std::optional<double> after) const {
    std::string remark = &line.label == &workbook::kHostMemory
                             ? context_.Say(workbook::kCountsPageCache)
                             : std::string();
    if (line.change == nullptr || !before || !after) return remark;
    const std::string change = context_.Say(
        *line.change, {{"amount", fmt::format("{:+.{}f}", *after - *before, line.digits)}});
    return remark.empty() ? change : absl::StrCat(change, "; ", remark);
  }

  struct CellColumnSpec {
    const Text& header;
    Look look;
    SummaryNumber number;
  };

  static std::vector<CellColumnSpec> CellNumbers() {
    using U = UtilisationSummary;
    return {
        {workbook::kTicks, Look::kInteger,
         [](const U& u) { return static_cast<double>(u.samples); }},
        {workbook::kAicoreAvg, Look::kNumber1, [](const U& u) { return u.busy_avg; }},
        {workbook::kAicoreP95, Look::kNumber1, [](const U& u) { return u.busy_p95; }},
        {workbook::kAicoreMax, Look::kNumber1, [](const U& u) { return u.busy_max; }},
        {workbook::kIdleShare, Look::kShare, [](const U& u) { return u.idle_share; }},
        {workbook::kImbalance, Look::kNumber2, [](const U& u) { return u.imbalance; }},
        {workbook::kHbmAvgMb, Look::kInteger, [](const U& u) { return u.device_memory_avg_mb; }},
        {workbook::kHbmMaxMb, Look::kInteger, [](const U& u) { return u.device_memory_max_mb; }},
        {workbook::kCpuAvg, Look::kNumber1, [](const U& u) { return u.cpu_avg_percent; }},
        {workbook::kHostUnavailable, Look::kInteger,
         [](const U& u) { return u.host_memory_unavailable_mb; }},
        {workbook::kPower, Look::kNumber1, [](const U& u) { return u.power_avg_w; }},
        {workbook::kEnergyPerToken, Look::kNumber4,
         [](const U& u) { return u.joules_per_output_token; }},
        {workbook::kTokensPerBusy, Look::kNumber2,
         [](const U& u) { return u.tokens_per_busy_device_second; }}};
  }

  void WriteCells() {
    const Text* labels[] = {&workbook::kScenario, &workbook::kConcurrency, &workbook::kSystem,
                            &workbook::kStart, &workbook::kEnd};
    uint16_t column = 0;
    for (const Text* label : labels) {
      sheet_.Text(kCellHeaderRow, column++, context_.Say(*label), Look::kHeader);
    }
    for (const CellColumnSpec& spec : CellNumbers()) {
      sheet_.Text(kCellHeaderRow, column++, context_.Say(spec.header), Look::kHeader);
    }
    uint32_t row = kCellHeaderRow + 1;
    for (const Place& place : facts_.places()) {
      for (const SystemFacts* system : facts_.systems()) {
        const CellFacts* cell = facts_.Cell(system, place);
        if (cell != nullptr && cell->utilisation) WriteCell(row++, place, *system, *cell);
      }
    }
  }

  void WriteCell(uint32_t row, const Place& place, const SystemFacts& system,
                 const CellFacts& cell) {
    const UtilisationSummary& summary = *cell.utilisation;
    sheet_.Text(row, 0, context_.Scenario(*place.scenario), Look::kLabel);
    sheet_.Text(row, 1, ConcurrencyName(place.concurrency), Look::kLabel);
    sheet_.Text(row, 2, system.label, Look::kLabel);
    sheet_.Number(row, 3, ExcelTime(summary.wall_start_ns), Look::kTime);
    sheet_.Number(row, 4, ExcelTime(summary.wall_end_ns), Look::kTime);
    uint16_t column = 5;
    for (const CellColumnSpec& spec : CellNumbers()) {
      sheet_.Number(row, column++, spec.number(summary), spec.look);
    }
  }

  // Days since 1899-12-30.
  static std::optional<double> ExcelTime(int64_t wall_ns) {
    if (wall_ns <= 0) return std::nullopt;
    constexpr double kDaysToUnixEpoch = 25569.0;
    return kDaysToUnixEpoch + static_cast<double>(wall_ns) / 1e9 / 86400.0;
  }

  void WriteSeries() {
    uint16_t column = kSeriesColumn;
    lxw_chart* chart = nullptr;
    for (const SystemFacts* system : {facts_.baseline(), facts_.treatment()}) {
      const UtilisationSummary* summary = SummaryOf(system);
      if (summary == nullptr || summary->series.empty()) continue;
      WritePoints(*system, *summary, column);
      if (chart == nullptr) chart = context_.book.Chart(LXW_CHART_SCATTER_STRAIGHT);
      const auto last = static_cast<uint32_t>(kFirstDataRow + summary->series.size() - 1);
      for (uint16_t i = 1; i <= 4; ++i) {
        const auto values = static_cast<uint16_t>(column + i);
        AddSeries(chart, {sheet_.name(), kFirstDataRow, last, column},
                  {sheet_.name(), kFirstDataRow, last, values}, kHeaderRow, values);
      }
      column = static_cast<uint16_t>(column + 6);
    }
    if (chart == nullptr) return;
    chart_title_set_name(chart, context_.Say(workbook::kTimeline).c_str());
    chart_axis_set_name(chart->x_axis, context_.Say(workbook::kSecondsAxis).c_str());
    chart_axis_set_name(chart->y_axis, context_.Say(workbook::kPercentAxis).c_str());
    chart_axis_set_min(chart->y_axis, 0);
    chart_show_blanks_as(chart, LXW_CHART_BLANKS_AS_GAP);
    sheet_.Place(chart, CellRows() + 2, 0, 2.0, 1.3);
  }

  uint32_t CellRows() const {
    uint32_t row = kCellHeaderRow + 1;
    for (const CellFacts& cell : facts_.comparison().cells) row += cell.utilisation ? 1 : 0;
    return row;
  }

  void WritePoints(const SystemFacts& system, const UtilisationSummary& summary, uint16_t column) {
    const Text* headers[] = {&workbook::kSeconds, &workbook::kBusyMean, &workbook::kBusyMin,
                             &workbook::kBusyMax, &workbook::kBusyCpu};
    for (size_t i = 0; i < std::size(headers); ++i) {
      sheet_.Text(kHeaderRow, static_cast<uint16_t>(column + i),
                  context_.Say(*headers[i], {{"system", system.label}}), Look::kHeader);
    }
    uint32_t row = kFirstDataRow;
    for (const UtilisationPoint& point : summary.series) {
      const std::optional<double> values[] = {point.seconds, point.busy_mean, point.busy_min_device,
                                              point.busy_max_device, point.cpu_percent};
      for (size_t i = 0; i < std::size(values); ++i) {
        sheet_.Number(row, static_cast<uint16_t>(column + i), values[i], Look::kNumber1);
      }
      ++row;
    }
  }

  const WorkbookContext& context_;
  const Facts& facts_;
  Sheet& sheet_;
};

}  // namespace

void WriteUtilizationSheet(const WorkbookContext& context, Sheet sheet) {
  UtilizationSheet(context, sheet).Write();
}

}  // namespace fulgur::bench

// Sheet 1: output tokens per second per user of baseline, treatment and reference, with verdicts,
// and what stands behind them.
#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "bench/report/workbook_sheets.h"
#include "bench/report/workbook_texts.h"

namespace fulgur::bench {
namespace {

// Columns that formulas and charts refer to.
enum Column : uint16_t { C = 2, D = 3, E = 4, F = 5, P = 15, S = 18 };

constexpr char kWeightedTag[] = "fulgur_per_user_token_weighted";
constexpr char kRatioFormula[] =
    "=IF(AND(ISNUMBER({a}{r}),ISNUMBER({b}{r}),{b}{r}>0),{a}{r}/{b}{r},\"\")";
constexpr char kVerdictFormula[] =
    "=IF(E{r}=\"\",\"n/a\",IF(E{r}<=1-reg_threshold,\"REGRESSION\","
    "IF(E{r}>=1+reg_threshold,\"improved\",\"neutral\")))";

std::optional<double> Ratio(std::optional<double> value, std::optional<double> base) {
  if (!value || !base || *base <= 0) return std::nullopt;
  return *value / *base;
}

std::string RatioFormula(const std::string& value, const std::string& base) {
  return absl::StrReplaceAll(kRatioFormula, {{"{a}", value}, {"{b}", base}});
}

class ThroughputSheet {
 public:
  ThroughputSheet(const WorkbookContext& context, Sheet& sheet)
      : context_(context), facts_(context.facts), sheet_(sheet) {
    if (!facts_.references().empty()) reference_ = facts_.references().front();
  }

  void Write() {
    sheet_.Title(context_.Say(workbook::kThroughputTitle,
                              {{"treatment", context_.TreatmentLabel()},
                               {"baseline", facts_.baseline() ? facts_.baseline()->label
                                                              : std::string(kAbsent)}}),
                 6);
    WriteColumns(sheet_, context_, Columns());
    HighlightSpeedups();
    WriteMeans();
    PlaceCharts();
  }

 private:
  PlaceNumber Metric(const SystemFacts* system, const char* tag) const {
    return [this, system, tag](const Place& place) { return facts_.Value(system, place, tag); };
  }

  std::optional<double> Speedup(const Place& place) const {
    return Ratio(facts_.Value(facts_.treatment(), place, kHeadlineTag),
                 facts_.Value(facts_.baseline(), place, kHeadlineTag));
  }

  std::vector<SheetColumn> Columns() const {
    std::vector<SheetColumn> columns = PlaceColumns(context_);
    const auto append = [&columns](std::vector<SheetColumn> more) {
      columns.insert(columns.end(), more.begin(), more.end());
    };
    append(HeadlineColumns());
    append({EmptyColumn()});
    append(VerdictColumns());
    append(WeightedColumns());
    append(SystemColumns());
    for (size_t i = 1; i < facts_.references().size(); ++i) {
      append(FurtherReference(*facts_.references()[i], columns.size()));
    }
    return columns;
  }

  std::vector<SheetColumn> HeadlineColumns() const {
    const std::string treatment = context_.TreatmentLabel();
    const std::string reference =
        reference_ != nullptr ? reference_->label : context_.Say(workbook::kReference);
    const std::string reference_word = reference.substr(0, reference.find(' '));
    const char* tag = kHeadlineTag.data();
    return {
        NumberColumn(context_.BaselineLabel(), 11, Look::kNumber2, Metric(facts_.baseline(), tag)),
        NumberColumn(treatment, 11, Look::kNumber2, Metric(facts_.treatment(), tag)),
        FormulaColumn(absl::StrCat(treatment, "/", context_.BaselineLabel()), 16, Look::kRatio,
                      RatioFormula("D", "C"),
                      [this](const Place& place) { return Speedup(place); }),
        NumberColumn(reference, 16, Look::kNumber2, Metric(reference_, tag)),
        FormulaColumn(absl::StrCat(treatment, "/", reference_word), 13, Look::kRatio,
                      RatioFormula("D", "F"), [this](const Place& place) {
                        return Ratio(facts_.Value(facts_.treatment(), place, kHeadlineTag),
                                     facts_.Value(reference_, place, kHeadlineTag));
                      })};
  }

  std::vector<SheetColumn> VerdictColumns() const {
    const auto interval = [this](bool high) {
      return [this, high](const Place& place) -> std::optional<double> {
        const Contrast* contrast = facts_.Find(place);
        if (contrast == nullptr || !contrast->interval) return std::nullopt;
        return high ? contrast->interval->high : contrast->interval->low;
      };
    };
    SheetColumn by_threshold{
        context_.Say(workbook::kVerdict), 13,
        [this](Sheet& sheet, uint32_t row, uint16_t column, const Place& place) {
          sheet.TextFormula(row, column,
                            absl::StrReplaceAll(kVerdictFormula, {{"{r}", absl::StrCat(row + 1)}}),
                            VerdictByThreshold(Speedup(place)), Look::kText);
        }};
    return {FormulaColumn(context_.Say(workbook::kDelta), 10, Look::kPercent,
                          "=IF(E{r}=\"\",\"\",E{r}-1)",
                          [this](const Place& place) -> std::optional<double> {
                            const auto speedup = Speedup(place);
                            if (!speedup) return std::nullopt;
                            return *speedup - 1;
                          }),
            by_threshold,
            TextColumn(context_.Say(workbook::kVerdictInterval), 24, Look::kText,
                       [this](const Place& place) { return ProgramVerdict(place); }),
            NumberColumn(context_.Say(workbook::kIntervalLow), 9, Look::kRatio, interval(false)),
            NumberColumn(context_.Say(workbook::kIntervalHigh), 9, Look::kRatio, interval(true))};
  }

  std::string VerdictByThreshold(std::optional<double> speedup) const {
    const double threshold = facts_.comparison().threshold;
    if (!speedup) return VerdictName(Verdict::kNotAvailable);
    if (*speedup <= 1 - threshold) return VerdictName(Verdict::kRegression);
    return VerdictName(*speedup >= 1 + threshold ? Verdict::kImproved : Verdict::kNeutral);
  }

  std::string ProgramVerdict(const Place& place) const {
    const Contrast* contrast = facts_.Find(place);
    if (contrast == nullptr) return VerdictName(Verdict::kNotAvailable);
    std::string verdict = VerdictName(contrast->verdict);
    if (contrast->note.empty() || contrast->verdict == Verdict::kNotAvailable) return verdict;
    return absl::StrCat(verdict, " (", contrast->note, ")");
  }

  std::vector<SheetColumn> WeightedColumns() const {
    const auto header = [this](const std::string& system) {
      return context_.Say(workbook::kWeighted, {{"system", system}});
    };
    return {NumberColumn(header(context_.BaselineLabel()), 15, Look::kNumber2,
                         Metric(facts_.baseline(), kWeightedTag)),
            NumberColumn(header(context_.TreatmentLabel()), 15, Look::kNumber2,
                         Metric(facts_.treatment(), kWeightedTag)),
            FormulaColumn(context_.Say(workbook::kWeightedSpeedup), 15, Look::kRatio,
                          RatioFormula("O", "N"), [this](const Place& place) {
                            return Ratio(facts_.Value(facts_.treatment(), place, kWeightedTag),
                                         facts_.Value(facts_.baseline(), place, kWeightedTag));
                          })};
  }

  std::vector<SheetColumn> SystemColumns() const {
    std::vector<SheetColumn> columns;
    const std::pair<const SystemFacts*, std::string> both[] = {
        {facts_.baseline(), context_.BaselineLabel()},
        {facts_.treatment(), context_.TreatmentLabel()}};
    for (const auto& [system, label] : both) {
      columns.push_back(NumberColumn(context_.Say(workbook::kSystemRate, {{"system", label}}), 12,
                                     Look::kNumber1, [this, system = system](const Place& place) {
                                       return facts_.SystemRate(system, place);
                                     }));
    }
    const std::pair<const char*, const char*> sources[] = {{"Q", "devices_baseline"},
                                                           {"R", "devices_treatment"}};
    for (size_t i = 0; i < 2; ++i) {
      columns.push_back(FormulaColumn(
          context_.Say(workbook::kRatePerDevice, {{"system", both[i].second}}), 12, Look::kNumber2,
          absl::StrReplaceAll("=IF(AND(ISNUMBER({a}{r}),ISNUMBER({b})),{a}{r}/{b},\"\")",
                              {{"{a}", sources[i].first}, {"{b}", sources[i].second}}),
          [this, system = both[i].first](const Place& place) {
            return facts_.RatePerDevice(system, place);
          }));
    }
    for (const auto& [system, label] : both) {
      columns.push_back(TextColumn(context_.Say(workbook::kOkErrors, {{"system", label}}), 12,
                                   Look::kText, [this, system = system](const Place& place) {
                                     return OkErrors(facts_.Cell(system, place));
                                   }));
    }
    columns.push_back(NumberColumn(
        context_.Say(workbook::kAcceptance), 12, Look::kNumber2,
        [this](const Place& place) { return facts_.AcceptanceLength(facts_.treatment(), place); }));
    return columns;
  }

  static std::string OkErrors(const CellFacts* cell) {
    if (cell == nullptr || !cell->requests) return "";
    return absl::StrCat(*cell->requests, "/", cell->errors ? absl::StrCat(*cell->errors) : "?");
  }

  // References besides the first: behind an empty column, value and ratio.
  std::vector<SheetColumn> FurtherReference(const SystemFacts& reference, size_t columns) const {
    const std::string value = ColumnName(static_cast<uint16_t>(columns + 1));
    return {
        EmptyColumn(),
        NumberColumn(reference.label, 16, Look::kNumber2, Metric(&reference, kHeadlineTag.data())),
        FormulaColumn(absl::StrCat(context_.TreatmentLabel(), "/", reference.label), 16,
                      Look::kRatio, RatioFormula("D", value),
                      [this, &reference](const Place& place) {
                        return Ratio(facts_.Value(facts_.treatment(), place, kHeadlineTag),
                                     facts_.Value(&reference, place, kHeadlineTag));
                      })};
  }

  void HighlightSpeedups() {
    for (const char* name : {"E", "P"}) {
      const uint16_t column = *name == 'E' ? E : P;
      const std::string cell = absl::StrCat(name, kFirstDataRow + 1);
      sheet_.Highlight(kFirstDataRow, context_.last_row(), column,
                       absl::StrCat("=AND(ISNUMBER(", cell, "),", cell, ">=1+reg_threshold)"),
                       true);
      sheet_.Highlight(kFirstDataRow, context_.last_row(), column,
                       absl::StrCat("=AND(ISNUMBER(", cell, "),", cell, "<=1-reg_threshold)"),
                       false);
    }
  }

  // The geometric mean of the speed-ups of places [first, last].
  void WriteMean(uint32_t row, const std::string& scope, size_t first, size_t last) {
    double logarithms = 0.0;
    int count = 0;
    for (size_t i = first; i <= last && i < facts_.places().size(); ++i) {
      if (const auto speedup = Speedup(facts_.places()[i])) {
        logarithms += std::log(*speedup);
        ++count;
      }
    }
    const std::string range =
        absl::StrCat("E", kFirstDataRow + 1 + first, ":E", kFirstDataRow + 1 + last);
    sheet_.Text(row, 0, context_.Say(workbook::kGeometricMean, {{"scope", scope}}), Look::kLabel);
    for (uint16_t column = 1; column < E; ++column) sheet_.Text(row, column, "", Look::kLabel);
    sheet_.Formula(row, E, absl::StrCat("=IF(COUNT(", range, ")>0,GEOMEAN(", range, "),\"\")"),
                   count > 0 ? std::optional(std::exp(logarithms / count)) : std::nullopt,
                   Look::kRatio);
  }

  void WriteMeans() {
    const size_t per_scenario = facts_.comparison().concurrencies.size();
    uint32_t row = context_.last_row() + 2;
    if (facts_.places().empty()) return;
    for (size_t i = 0; i < facts_.comparison().scenarios.size(); ++i) {
      WriteMean(row++, context_.Scenario(facts_.comparison().scenarios[i]), i * per_scenario,
                (i + 1) * per_scenario - 1);
    }
    WriteMean(row, context_.Say(workbook::kAllCells), 0, facts_.places().size() - 1);
  }

  CellColumn Rows(uint16_t column, size_t first, size_t last) const {
    return {sheet_.name(), kFirstDataRow + static_cast<uint32_t>(first),
            kFirstDataRow + static_cast<uint32_t>(last), column};
  }

  void PlaceCharts() {
    const size_t scenarios = facts_.comparison().scenarios.size();
    const size_t per_scenario = facts_.comparison().concurrencies.size();
    const uint32_t row = context_.last_row() + 2 + static_cast<uint32_t>(scenarios) + 2;
    constexpr uint16_t kPlaces[] = {0, 5, 10, 16, 22, 28};
    for (size_t i = 0; i < std::min(scenarios, std::size(kPlaces)); ++i) {
      LineChart(i * per_scenario, (i + 1) * per_scenario - 1, row, kPlaces[i]);
    }
    if (facts_.places().empty()) return;
    SpeedupChart(row + 17);
    ParetoChart(row + 17);
  }

  void LineChart(size_t first, size_t last, uint32_t row, uint16_t column) {
    lxw_chart* chart = context_.book.Chart(LXW_CHART_LINE);
    chart_title_set_name_range(chart, sheet_.name().c_str(),
                               kFirstDataRow + static_cast<uint32_t>(first), 0);
    for (uint16_t values : {C, D, F}) {
      if (values == F && reference_ == nullptr) continue;
      lxw_chart_series* series =
          AddSeries(chart, Rows(1, first, last), Rows(values, first, last), kHeaderRow, values);
      StyleSeries(series, values == C ? 0 : values == D ? 1 : 2);
    }
    chart_axis_set_name(chart->x_axis, context_.Say(workbook::kConcurrencyAxis).c_str());
    chart_axis_set_name(chart->y_axis, context_.Say(workbook::kUserAxis).c_str());
    chart_axis_set_min(chart->y_axis, 0);
    chart_legend_set_position(chart, LXW_CHART_LEGEND_BOTTOM);
    chart_show_blanks_as(chart, LXW_CHART_BLANKS_AS_GAP);
    sheet_.Place(chart, row, column, 0.9, 1.05);
  }

  static void StyleSeries(lxw_chart_series* series, size_t hue) {
    static constexpr lxw_color_t kColours[] = {0x0072B2, 0xD55E00, 0x009E73};
    static constexpr uint8_t kMarkers[] = {LXW_CHART_MARKER_SQUARE, LXW_CHART_MARKER_CIRCLE,
                                           LXW_CHART_MARKER_TRIANGLE};
    lxw_chart_line line = {};
    line.color = kColours[hue];
    line.width = 2;
    lxw_chart_fill fill = {};
    fill.color = kColours[hue];
    chart_series_set_line(series, &line);
    chart_series_set_marker_type(series, kMarkers[hue]);
    chart_series_set_marker_size(series, 7);
    chart_series_set_marker_fill(series, &fill);
    chart_series_set_marker_line(series, &line);
  }

  // Columns stand on the line 1.0: gains rise from it, losses hang from it.
  void SpeedupChart(uint32_t row) {
    lxw_chart* chart = context_.book.Chart(LXW_CHART_COLUMN);
    chart_title_set_name(chart, context_.Say(workbook::kSpeedupTitle).c_str());
    const size_t last = facts_.places().size() - 1;
    lxw_chart_series* series = AddSeries(chart, Rows(1, 0, last), Rows(E, 0, last), kHeaderRow, E);
    chart_series_set_categories(series, sheet_.name().c_str(), kFirstDataRow, 0,
                                context_.last_row(), 1);
    lxw_chart_fill fill = {};
    fill.color = 0xD55E00;
    chart_series_set_fill(series, &fill);
    chart_axis_set_crossing(chart->y_axis, 1.0);
    chart_axis_set_label_position(chart->x_axis, LXW_CHART_AXIS_LABEL_POSITION_LOW);
    chart_axis_set_num_format(chart->y_axis, "0.0\"x\"");
    chart_legend_set_position(chart, LXW_CHART_LEGEND_NONE);
    sheet_.Place(chart, row, 0, 1.5, 1.15);
  }

  // One line per system and scenario that has rates per device; the library refuses a chart without
  // a series.
  void ParetoChart(uint32_t row) {
    lxw_chart* chart = nullptr;
    const size_t per_scenario = facts_.comparison().concurrencies.size();
    for (size_t i = 0; i < facts_.comparison().scenarios.size(); ++i) {
      const size_t first = i * per_scenario;
      const size_t last = first + per_scenario - 1;
      for (uint16_t system = 0; system < 2; ++system) {
        if (!HasRates(system == 0 ? facts_.baseline() : facts_.treatment(), first, last)) continue;
        if (chart == nullptr) chart = NewParetoChart();
        AddParetoSeries(chart, system, i, first, last);
      }
    }
    if (chart != nullptr) sheet_.Place(chart, row, 8, 1.4, 1.15);
  }

  lxw_chart* NewParetoChart() {
    lxw_chart* chart = context_.book.Chart(LXW_CHART_SCATTER_STRAIGHT_WITH_MARKERS);
    chart_title_set_name(chart, context_.Say(workbook::kParetoTitle).c_str());
    chart_axis_set_name(chart->x_axis, context_.Say(workbook::kUserAxis).c_str());
    chart_axis_set_name(chart->y_axis, context_.Say(workbook::kDeviceAxis).c_str());
    chart_legend_set_position(chart, LXW_CHART_LEGEND_RIGHT);
    return chart;
  }

  void AddParetoSeries(lxw_chart* chart, uint16_t system, size_t scenario, size_t first,
                       size_t last) {
    const auto x = static_cast<uint16_t>(C + system);
    const auto y = static_cast<uint16_t>(S + system);
    lxw_chart_series* series =
        AddSeries(chart, Rows(x, first, last), Rows(y, first, last), kHeaderRow, x);
    const std::string label = system == 0 ? context_.BaselineLabel() : context_.TreatmentLabel();
    chart_series_set_name(
        series, absl::StrCat(label, " ", facts_.comparison().scenarios[scenario].id).c_str());
    StyleSeries(series, system);
  }

  bool HasRates(const SystemFacts* system, size_t first, size_t last) const {
    for (size_t i = first; i <= last; ++i) {
      if (facts_.RatePerDevice(system, facts_.places()[i])) return true;
    }
    return false;
  }

  const WorkbookContext& context_;
  const Facts& facts_;
  Sheet& sheet_;
  const SystemFacts* reference_ = nullptr;
};

}  // namespace

void WriteThroughputSheet(const WorkbookContext& context, Sheet sheet) {
  ThroughputSheet(context, sheet).Write();
}

}  // namespace fulgur::bench

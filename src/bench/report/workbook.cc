#include "bench/report/workbook.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "bench/report/workbook_sheets.h"
#include "bench/report/workbook_texts.h"

namespace fulgur::bench {
namespace {

constexpr int64_t kNoDateKnown = 946684800;  // 2000-01-01: equal for all workbooks without dates

std::string InEvery(const std::vector<Language>& languages,
                    const std::function<std::string(Language)>& say) {
  std::vector<std::string> said;
  for (Language language : languages) {
    std::string words = say(language);
    if (std::find(said.begin(), said.end(), words) == said.end()) said.push_back(std::move(words));
  }
  return absl::StrJoin(said, " / ");
}

size_t Characters(std::string_view text) {
  return static_cast<size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  }));
}

}  // namespace

std::string WorkbookContext::Say(const Text& text, TextArguments arguments) const {
  return InEvery(languages, [&](Language language) { return Voice(language)(text, arguments); });
}

std::string WorkbookContext::Scenario(const ScenarioFacts& scenario) const {
  return InEvery(languages,
                 [&](Language language) { return facts.ScenarioLabel(scenario, language); });
}

std::string WorkbookContext::BaselineLabel() const { return Say(workbook::kBaseline); }

std::string WorkbookContext::TreatmentLabel() const {
  return facts.treatment() != nullptr ? facts.treatment()->label : std::string(kAbsent);
}

uint32_t WorkbookContext::last_row() const {
  return kFirstDataRow + static_cast<uint32_t>(std::max<size_t>(facts.places().size(), 1)) - 1;
}

SheetColumn TextColumn(std::string header, double width, Look look, PlaceText text) {
  return {std::move(header), width,
          [look, text = std::move(text)](Sheet& sheet, uint32_t row, uint16_t column,
                                         const Place& place) {
            sheet.Text(row, column, text(place), look);
          }};
}

SheetColumn NumberColumn(std::string header, double width, Look look, PlaceNumber number) {
  return {std::move(header), width,
          [look, number = std::move(number)](Sheet& sheet, uint32_t row, uint16_t column,
                                             const Place& place) {
            sheet.Number(row, column, number(place), look);
          }};
}

SheetColumn FormulaColumn(std::string header, double width, Look look, std::string formula,
                          PlaceNumber result) {
  return {std::move(header), width,
          [look, formula = std::move(formula), result = std::move(result)](
              Sheet& sheet, uint32_t row, uint16_t column, const Place& place) {
            sheet.Formula(row, column,
                          absl::StrReplaceAll(formula, {{"{r}", absl::StrCat(row + 1)}}),
                          result(place), look);
          }};
}

SheetColumn EmptyColumn() {
  return {"", 3, [](Sheet&, uint32_t, uint16_t, const Place&) {}};
}

std::vector<SheetColumn> PlaceColumns(const WorkbookContext& context) {
  return {TextColumn(context.Say(workbook::kScenario), 24, Look::kLabel,
                     [&context](const Place& place) {
                       return place.first_of_scenario ? context.Scenario(*place.scenario) : "";
                     }),
          TextColumn(context.Say(workbook::kConcurrency), 5, Look::kLabel,
                     [](const Place& place) { return ConcurrencyName(place.concurrency); })};
}

void WriteColumns(Sheet& sheet, const WorkbookContext& context,
                  const std::vector<SheetColumn>& columns) {
  std::vector<double> widths;
  for (size_t i = 0; i < columns.size(); ++i) {
    const auto column = static_cast<uint16_t>(i);
    widths.push_back(columns[i].width);
    if (columns[i].header.empty()) continue;
    sheet.Text(kHeaderRow, column, columns[i].header, Look::kHeader);
    uint32_t row = kFirstDataRow;
    for (const Place& place : context.facts.places()) columns[i].write(sheet, row++, column, place);
  }
  sheet.Widths(widths);
  sheet.Height(kHeaderRow, kHeaderHeight);
  sheet.Freeze(kFirstDataRow, 2);
}

std::string SheetName(const std::string& label, const std::string& suffix) {
  constexpr size_t kMostCharacters = 31;
  std::string name;
  for (char c : label) {
    const bool refused = std::string_view("[]:*?/\\'").find(c) != std::string_view::npos ||
                         static_cast<unsigned char>(c) < 0x20;
    name += refused ? '_' : c;
  }
  while (Characters(name) + suffix.size() > kMostCharacters) {
    while (!name.empty() && (static_cast<unsigned char>(name.back()) & 0xC0) == 0x80) {
      name.pop_back();
    }
    if (!name.empty()) name.pop_back();
  }
  return name + suffix;
}

absl::Status WriteWorkbook(const Comparison& comparison, const std::vector<Language>& languages,
                           const std::filesystem::path& file, const ExtraSheets& extra) {
  const Facts facts(comparison);
  const auto span = facts.Span();
  const std::string treatment = facts.treatment() != nullptr ? facts.treatment()->label : "";
  Book book(file, span ? span->second / 1'000'000'000 : kNoDateKnown,
            absl::StrCat(treatment, treatment.empty() ? "" : ": ", "benchmark results"));
  const WorkbookContext context{facts, languages, book};
  WriteThroughputSheet(context, book.Add("3-way-Throughput"));
  WriteItlSheet(context, book.Add(SheetName(treatment, "-ITL")));
  WriteTtftSheet(context, book.Add(SheetName(treatment, "-TTFT")));
  WriteUtilizationSheet(context, book.Add("Utilization"));
  WriteConfigSheet(context, book.Add("Config"));
  if (extra.wanted) {
    WriteRawSheet(context, book.Add("Raw"));
    WritePercentilesSheet(context, book.Add("Percentiles"));
    WriteErrorsSheet(context, book.Add("Errors"));
    if (extra.slices != nullptr && !extra.slices->empty()) {
      WriteSlicesSheet(context, *extra.slices, book.Add("Timeslices"));
    }
  }
  return book.Close();
}

}  // namespace fulgur::bench

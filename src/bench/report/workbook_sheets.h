// The sheets of the workbook and what they share. Private to the workbook.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "bench/report/facts.h"
#include "bench/report/report_input.h"
#include "bench/report/sheet.h"
#include "bench/report/text.h"

namespace fulgur::bench {

inline constexpr uint32_t kHeaderRow = 2;
inline constexpr uint32_t kFirstDataRow = 3;
inline constexpr double kHeaderHeight = 48;  // points: three lines

struct WorkbookContext {
  const Facts& facts;
  const std::vector<Language>& languages;
  Book& book;

  // A text in every language, "Scenario / 场景", said once if all languages say the same.
  std::string Say(const Text& text, TextArguments arguments = {}) const;
  std::string Scenario(const ScenarioFacts& scenario) const;
  std::string BaselineLabel() const;  // as the first sheets call it
  std::string TreatmentLabel() const;
  uint32_t last_row() const;  // of the rows with a scenario and a concurrency
};

// A column of a sheet: its header and how the cell of a place is written.
struct SheetColumn {
  std::string header;
  double width = 12;
  std::function<void(Sheet&, uint32_t row, uint16_t column, const Place&)> write;
};

using PlaceText = std::function<std::string(const Place&)>;
using PlaceNumber = std::function<std::optional<double>(const Place&)>;

SheetColumn TextColumn(std::string header, double width, Look look, PlaceText text);
SheetColumn NumberColumn(std::string header, double width, Look look, PlaceNumber number);
// In the formula {r} stands for the row as Excel counts it.
SheetColumn FormulaColumn(std::string header, double width, Look look, std::string formula,
                          PlaceNumber result);
SheetColumn EmptyColumn();
// Scenario (in its first row only) and concurrency: the first two columns of every sheet.
std::vector<SheetColumn> PlaceColumns(const WorkbookContext& context);

void WriteColumns(Sheet& sheet, const WorkbookContext& context,
                  const std::vector<SheetColumn>& columns);

void WriteThroughputSheet(const WorkbookContext& context, Sheet sheet);
void WriteItlSheet(const WorkbookContext& context, Sheet sheet);
void WriteTtftSheet(const WorkbookContext& context, Sheet sheet);
void WriteUtilizationSheet(const WorkbookContext& context, Sheet sheet);
// Also defines the names that formulas of other sheets use.
void WriteConfigSheet(const WorkbookContext& context, Sheet sheet);

// The sheets that only come on request.
void WriteRawSheet(const WorkbookContext& context, Sheet sheet);
void WritePercentilesSheet(const WorkbookContext& context, Sheet sheet);
void WriteErrorsSheet(const WorkbookContext& context, Sheet sheet);
void WriteSlicesSheet(const WorkbookContext& context, const std::vector<CellSlices>& slices,
                      Sheet sheet);

}  // namespace fulgur::bench

// A thin layer over libxlsxwriter (https://libxlsxwriter.github.io): cells by row and column with
// one look for the whole workbook, absent values as empty cells, formulas with their result.
//
// Rows and columns count from 0, as in the library; formulas name them as Excel does.
#pragma once

#include <xlsxwriter.h>

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace fulgur::bench {

enum class Look {
  kTitle,
  kHeader,
  kLabel,  // text on light blue
  kText,
  kWrapped,  // long text over several lines
  kBad,      // text on red
  kInteger,
  kNumber1,    // 0.0
  kNumber2,    // 0.00
  kNumber4,    // 0.0000
  kRatio,      // 0.00"x"
  kPercent,    // +0.0%;-0.0%;0.0%
  kReduction,  // a reduction prints as -48 %, its opposite as +36 %
  kShare,      // 0.0%
  kTime,       // UTC
};

class Book;

class Sheet {
 public:
  Sheet(Book& book, lxw_worksheet* worksheet) : book_(&book), worksheet_(worksheet) {}

  void Text(uint32_t row, uint16_t column, const std::string& text, Look look);
  // An absent number is an empty cell with a border.
  void Number(uint32_t row, uint16_t column, std::optional<double> number, Look look);
  // `result` is what Excel will compute; absent: the empty text.
  void Formula(uint32_t row, uint16_t column, const std::string& formula,
               std::optional<double> result, Look look);
  void TextFormula(uint32_t row, uint16_t column, const std::string& formula,
                   const std::string& result, Look look);
  void Title(const std::string& text, uint16_t last_column);
  void Widths(const std::vector<double>& widths);  // from column A
  void Height(uint32_t row, double points);
  void Freeze(uint32_t row, uint16_t column);
  // Colours cells of a column for which the formula (written for the first row) holds.
  void Highlight(uint32_t first_row, uint32_t last_row, uint16_t column, const std::string& formula,
                 bool good);
  void Place(lxw_chart* chart, uint32_t row, uint16_t column, double x_scale, double y_scale);

  std::string name() const { return worksheet_->name; }

 private:
  Book* book_;
  lxw_worksheet* worksheet_;
};

class Book {
 public:
  // `created_s` (Unix time) goes into the properties; with it equal input gives an equal file.
  Book(const std::filesystem::path& file, int64_t created_s, const std::string& title);
  ~Book();
  Book(const Book&) = delete;
  Book& operator=(const Book&) = delete;

  Sheet Add(const std::string& name);
  lxw_chart* Chart(lxw_chart_type type);
  void DefineName(const std::string& name, const std::string& reference);
  lxw_format* Format(Look look);
  lxw_format* Fill(bool good);
  absl::Status Close();

 private:
  std::filesystem::path file_;
  lxw_workbook* workbook_;
  std::map<Look, lxw_format*> formats_;
  std::map<bool, lxw_format*> fills_;
};

// A block of cells as a chart's data: one column.
struct CellColumn {
  std::string sheet;
  uint32_t first_row = 0;
  uint32_t last_row = 0;
  uint16_t column = 0;
};

// Adds a series whose name is the text of a cell, which keeps odd labels from being formulas.
lxw_chart_series* AddSeries(lxw_chart* chart, const CellColumn& categories,
                            const CellColumn& values, uint32_t name_row, uint16_t name_column);

// "C" for 2, "AA" for 26.
std::string ColumnName(uint16_t column);

}  // namespace fulgur::bench

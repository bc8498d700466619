#include "bench/report/sheet.h"

#include <array>

#include "absl/strings/str_cat.h"
#include "base/check.h"

namespace fulgur::bench {
namespace {

constexpr lxw_color_t kHeaderFill = 0x4472C4;
constexpr lxw_color_t kLabelFill = 0xD9E1F2;
constexpr lxw_color_t kBorder = 0xBFBFBF;
constexpr lxw_color_t kGoodFill = 0xC6EFCE;
constexpr lxw_color_t kBadFill = 0xFFC7CE;

const char* NumberFormat(Look look) {
  switch (look) {
    case Look::kInteger:
      return "0";
    case Look::kNumber1:
      return "0.0";
    case Look::kNumber2:
      return "0.00";
    case Look::kNumber4:
      return "0.0000";
    case Look::kRatio:
      return "0.00\"x\"";
    case Look::kPercent:
      return "+0.0%;-0.0%;0.0%";
    case Look::kReduction:
      return "-0%;+0%;0%";
    case Look::kShare:
      return "0.0%";
    case Look::kTime:
      return "yyyy-mm-dd hh:mm:ss";
    default:
      return nullptr;
  }
}

void Decorate(lxw_format* format, Look look) {
  if (look == Look::kTitle) {
    format_set_bold(format);
    format_set_font_size(format, 13);
    return;
  }
  format_set_border(format, LXW_BORDER_THIN);
  format_set_border_color(format, kBorder);
  if (look == Look::kHeader) {
    format_set_bold(format);
    format_set_font_size(format, 11);
    format_set_font_color(format, LXW_COLOR_WHITE);
    format_set_bg_color(format, kHeaderFill);
    format_set_text_wrap(format);
    format_set_align(format, LXW_ALIGN_CENTER);
    format_set_align(format, LXW_ALIGN_VERTICAL_CENTER);
  }
  if (look == Look::kLabel) format_set_bg_color(format, kLabelFill);
  if (look == Look::kBad) format_set_bg_color(format, kBadFill);
  if (look == Look::kWrapped || look == Look::kBad) {
    format_set_text_wrap(format);
    format_set_align(format, LXW_ALIGN_VERTICAL_TOP);
  }
}

// A cell of the format holds at most 32,767 characters.
std::string Fitting(const std::string& text) {
  constexpr size_t kMostBytes = 32000;
  if (text.size() <= kMostBytes) return text;
  size_t end = kMostBytes;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
  return absl::StrCat(text.substr(0, end), "...");
}

}  // namespace

void Sheet::Text(uint32_t row, uint16_t column, const std::string& text, Look look) {
  if (text.empty()) {
    worksheet_write_blank(worksheet_, row, column, book_->Format(look));
    return;
  }
  worksheet_write_string(worksheet_, row, column, Fitting(text).c_str(), book_->Format(look));
}

void Sheet::Number(uint32_t row, uint16_t column, std::optional<double> number, Look look) {
  if (number) {
    worksheet_write_number(worksheet_, row, column, *number, book_->Format(look));
  } else {
    worksheet_write_blank(worksheet_, row, column, book_->Format(look));
  }
}

void Sheet::Formula(uint32_t row, uint16_t column, const std::string& formula,
                    std::optional<double> result, Look look) {
  if (!result) {
    TextFormula(row, column, formula, "", look);
    return;
  }
  worksheet_write_formula_num(worksheet_, row, column, formula.c_str(), book_->Format(look),
                              *result);
}

void Sheet::TextFormula(uint32_t row, uint16_t column, const std::string& formula,
                        const std::string& result, Look look) {
  worksheet_write_formula_str(worksheet_, row, column, formula.c_str(), book_->Format(look),
                              result.c_str());
}

void Sheet::Title(const std::string& text, uint16_t last_column) {
  worksheet_merge_range(worksheet_, 0, 0, 0, last_column, Fitting(text).c_str(),
                        book_->Format(Look::kTitle));
  worksheet_set_row(worksheet_, 0, 20, nullptr);
}

void Sheet::Widths(const std::vector<double>& widths) {
  for (size_t i = 0; i < widths.size(); ++i) {
    const auto column = static_cast<lxw_col_t>(i);
    worksheet_set_column(worksheet_, column, column, widths[i], nullptr);
  }
}

void Sheet::Height(uint32_t row, double points) {
  worksheet_set_row(worksheet_, row, points, nullptr);
}

void Sheet::Freeze(uint32_t row, uint16_t column) {
  worksheet_freeze_panes(worksheet_, row, column);
}

void Sheet::Highlight(uint32_t first_row, uint32_t last_row, uint16_t column,
                      const std::string& formula, bool good) {
  std::string condition = formula;
  lxw_conditional_format format = {};
  format.type = LXW_CONDITIONAL_TYPE_FORMULA;
  format.value_string = condition.data();
  format.format = book_->Fill(good);
  worksheet_conditional_format_range(worksheet_, first_row, column, last_row, column, &format);
}

void Sheet::Place(lxw_chart* chart, uint32_t row, uint16_t column, double x_scale, double y_scale) {
  lxw_chart_options options = {};
  options.x_scale = x_scale;
  options.y_scale = y_scale;
  worksheet_insert_chart_opt(worksheet_, row, column, chart, &options);
}

Book::Book(const std::filesystem::path& file, int64_t created_s, const std::string& title)
    : file_(file), workbook_(workbook_new(file.c_str())) {
  CHECK(workbook_ != nullptr);
  std::string name = title;
  std::string author = "fulgur";
  lxw_doc_properties properties = {};
  properties.title = name.data();
  properties.author = author.data();
  properties.created = static_cast<time_t>(created_s);
  workbook_set_properties(workbook_, &properties);
}

Book::~Book() {
  if (workbook_ != nullptr) lxw_workbook_free(workbook_);
}

Sheet Book::Add(const std::string& name) {
  lxw_worksheet* worksheet = workbook_add_worksheet(workbook_, name.c_str());
  CHECK(worksheet != nullptr);
  worksheet_set_landscape(worksheet);
  worksheet_fit_to_pages(worksheet, 1, 0);
  worksheet_set_paper(worksheet, 9);  // A4
  return Sheet(*this, worksheet);
}

lxw_chart* Book::Chart(lxw_chart_type type) {
  return workbook_add_chart(workbook_, static_cast<uint8_t>(type));
}

void Book::DefineName(const std::string& name, const std::string& reference) {
  workbook_define_name(workbook_, name.c_str(), reference.c_str());
}

lxw_format* Book::Format(Look look) {
  lxw_format*& format = formats_[look];
  if (format == nullptr) {
    format = workbook_add_format(workbook_);
    Decorate(format, look);
    if (const char* number_format = NumberFormat(look))
      format_set_num_format(format, number_format);
  }
  return format;
}

lxw_format* Book::Fill(bool good) {
  lxw_format*& format = fills_[good];
  if (format == nullptr) {
    format = workbook_add_format(workbook_);
    format_set_bg_color(format, good ? kGoodFill : kBadFill);
  }
  return format;
}

absl::Status Book::Close() {
  lxw_workbook* workbook = workbook_;
  workbook_ = nullptr;  // closing frees it, whatever comes of it
  const lxw_error error = workbook_close(workbook);
  if (error == LXW_NO_ERROR) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat("the workbook ", file_.string(),
                                             " could not be written: ", lxw_strerror(error)));
}

lxw_chart_series* AddSeries(lxw_chart* chart, const CellColumn& categories,
                            const CellColumn& values, uint32_t name_row, uint16_t name_column) {
  lxw_chart_series* series = chart_add_series(chart, nullptr, nullptr);
  chart_series_set_categories(series, categories.sheet.c_str(), categories.first_row,
                              categories.column, categories.last_row, categories.column);
  chart_series_set_values(series, values.sheet.c_str(), values.first_row, values.column,
                          values.last_row, values.column);
  chart_series_set_name_range(series, values.sheet.c_str(), name_row, name_column);
  return series;
}

std::string ColumnName(uint16_t column) {
  std::array<char, 8> name = {};
  lxw_col_to_name(name.data(), column, 0);
  return name.data();
}

}  // namespace fulgur::bench

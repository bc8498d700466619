// Writes workbook, Markdown and HTML page of a comparison: the work of `fulgur bench report`.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "bench/report/report_input.h"
#include "bench/report/text.h"

namespace fulgur::bench {

// An empty path: not wanted.
struct ReportFiles {
  std::filesystem::path workbook;
  std::filesystem::path markdown;  // further languages: report.zh.md beside report.md
  std::filesystem::path html;      // all languages in one page
  bool extra_sheets = false;       // Raw, Percentiles, Errors, Timeslices in the workbook
  std::vector<Language> languages = {Language::kEnglish, Language::kChinese};
};

struct WrittenReport {
  std::vector<std::filesystem::path> files;
  std::vector<std::string> problems;  // what could not be made, one sentence each
};

// Makes what it can; what fails is told and does not keep the rest.
WrittenReport WriteReport(const ReportInput& input, const ReportFiles& files);

}  // namespace fulgur::bench

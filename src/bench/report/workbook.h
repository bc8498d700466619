// Writes a comparison as an Excel workbook of five sheets: throughput, inter-token latency, time to
// first token, utilisation, configuration.
//
// Numbers are numbers, formulas carry their result, what was not measured is an empty cell. Equal
// comparisons give equal files.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "bench/report/report_input.h"
#include "bench/report/text.h"
#include "bench/results/comparison.h"

namespace fulgur::bench {

// Sheets for those who want every number: Raw, Percentiles, Errors, and Timeslices where slices
// are known. They come behind the five, and only on request.
struct ExtraSheets {
  bool wanted = false;
  const std::vector<CellSlices>* slices = nullptr;
};

// With two languages headers read "Scenario / 场景".
absl::Status WriteWorkbook(const Comparison& comparison, const std::vector<Language>& languages,
                           const std::filesystem::path& file, const ExtraSheets& extra = {});

// A name that Excel takes for a sheet: at most 31 characters, none of []:*?/\.
std::string SheetName(const std::string& label, const std::string& suffix);

}  // namespace fulgur::bench

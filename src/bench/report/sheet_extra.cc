// Raw, Percentiles, Errors, Timeslices: every number in plain tables, to be filtered and pivoted.
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "bench/report/workbook_sheets.h"
#include "bench/report/workbook_texts.h"
#include "bench/results/error_groups.h"

namespace fulgur::bench {
namespace {

constexpr double kNsPerSecond = 1e9;
constexpr double kTextWidth = 22;
constexpr double kNumberWidth = 12;

// Rows from above to below, each of texts first and numbers behind.
class PlainTable {
 public:
  PlainTable(const WorkbookContext& context, const Text& title,
             const std::vector<std::string>& header, size_t text_columns, Sheet& sheet)
      : sheet_(sheet) {
    sheet_.Title(context.Say(title), static_cast<uint16_t>(header.size() - 1));
    std::vector<double> widths;
    for (size_t i = 0; i < header.size(); ++i) {
      sheet_.Text(kHeaderRow, static_cast<uint16_t>(i), header[i], Look::kHeader);
      widths.push_back(i < text_columns ? kTextWidth : kNumberWidth);
    }
    sheet_.Widths(widths);
    sheet_.Freeze(kFirstDataRow, static_cast<uint16_t>(text_columns));
  }

  void Row(const std::vector<std::string>& texts,
           const std::vector<std::optional<double>>& numbers) {
    uint16_t column = 0;
    for (const std::string& text : texts) sheet_.Text(row_, column++, text, Look::kText);
    for (const auto& number : numbers) sheet_.Number(row_, column++, number, Look::kNumber4);
    ++row_;
  }

 private:
  Sheet& sheet_;
  uint32_t row_ = kFirstDataRow;
};

std::vector<std::string> PlaceHeader(const WorkbookContext& context,
                                     const std::vector<std::string>& more) {
  std::vector<std::string> header = {context.Say(workbook::kSystem),
                                     context.Say(workbook::kScenario),
                                     context.Say(workbook::kConcurrency)};
  header.insert(header.end(), more.begin(), more.end());
  return header;
}

std::vector<std::string> PlaceTexts(const CellFacts& cell, const std::vector<std::string>& more) {
  std::vector<std::string> texts = {cell.system, cell.scenario, ConcurrencyName(cell.concurrency)};
  texts.insert(texts.end(), more.begin(), more.end());
  return texts;
}

std::optional<double> CountOf(const MetricBlock& block) {
  return block.count ? std::optional(static_cast<double>(*block.count)) : std::nullopt;
}

}  // namespace

void WriteRawSheet(const WorkbookContext& context, Sheet sheet) {
  const auto header =
      PlaceHeader(context, {context.Say(workbook::kMetric), context.Say(workbook::kUnit), "avg",
                            "min", "max", "std", "count", "sum"});
  PlainTable table(context, workbook::kRawTitle, header, 5, sheet);
  for (const CellFacts& cell : context.facts.comparison().cells) {
    for (const auto& [tag, block] : cell.metrics) {
      table.Row(PlaceTexts(cell, {tag, block.unit}),
                {block.avg, block.min, block.max, block.std, CountOf(block), block.sum});
    }
  }
}

void WritePercentilesSheet(const WorkbookContext& context, Sheet sheet) {
  std::vector<std::string> more = {context.Say(workbook::kMetric), context.Say(workbook::kUnit)};
  for (const int q : kPercentiles) more.push_back(absl::StrCat("p", q));
  PlainTable table(context, workbook::kPercentilesTitle, PlaceHeader(context, more), 5, sheet);
  for (const CellFacts& cell : context.facts.comparison().cells) {
    for (const auto& [tag, block] : cell.metrics) {
      if (block.percentiles.empty()) continue;
      std::vector<std::optional<double>> numbers;
      for (const int q : kPercentiles) {
        const auto value = block.percentiles.find(q);
        numbers.push_back(value == block.percentiles.end() ? std::nullopt
                                                           : std::optional(value->second));
      }
      table.Row(PlaceTexts(cell, {tag, block.unit}), numbers);
    }
  }
}

void WriteErrorsSheet(const WorkbookContext& context, Sheet sheet) {
  const auto header =
      PlaceHeader(context, {context.Say(workbook::kCode), context.Say(workbook::kType),
                            context.Say(workbook::kMessage), context.Say(workbook::kCount)});
  PlainTable table(context, workbook::kErrorsTitle, header, 6, sheet);
  for (const CellFacts& cell : context.facts.comparison().cells) {
    for (const ErrorGroup& group : cell.error_groups) {
      table.Row(PlaceTexts(cell, {CodeName(group), group.type, group.message}),
                {static_cast<double>(group.count)});
    }
  }
}

void WriteSlicesSheet(const WorkbookContext& context, const std::vector<CellSlices>& slices,
                      Sheet sheet) {
  constexpr const char* kTags[] = {
      "request_count",       "error_request_count", "request_throughput", "output_token_throughput",
      "time_to_first_token", "inter_token_latency", "request_latency",    "effective_concurrency"};
  std::vector<std::string> more = {context.Say(workbook::kWhole),
                                   context.Say(workbook::kSliceStart),
                                   context.Say(workbook::kSliceLength)};
  for (const char* tag : kTags) more.emplace_back(tag);
  PlainTable table(context, workbook::kSlicesTitle, PlaceHeader(context, more), 4, sheet);
  for (const CellSlices& cell : slices) {
    const int64_t origin_ns = cell.slices.front().start_ns;
    for (const TimeSlice& slice : cell.slices) {
      std::vector<std::optional<double>> numbers = {
          static_cast<double>(slice.start_ns - origin_ns) / kNsPerSecond,
          static_cast<double>(slice.end_ns - slice.start_ns) / kNsPerSecond};
      for (const char* tag : kTags) {
        const auto block = slice.metrics.find(tag);
        numbers.push_back(block == slice.metrics.end() ? std::nullopt : block->second.avg);
      }
      table.Row({cell.system, cell.scenario, ConcurrencyName(cell.concurrency),
                 slice.complete ? "yes" : "no"},
                numbers);
    }
  }
}

}  // namespace fulgur::bench

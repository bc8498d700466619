#include "bench/results/ds4_reader.h"

#include <algorithm>
#include <map>
#include <string>

#include "base/status_macros.h"
#include "bench/results/csv.h"
#include "bench/results/derive.h"
#include "bench/results/strings.h"
#include "fmt/format.h"

namespace fulgur::bench {
namespace {

constexpr std::string_view kFirstColumn = "ctx_tokens";
constexpr double kMsPerSecond = 1000.0;

using Row = std::map<std::string, double>;

// Absent if a column is missing, no number, or negative.
std::optional<Row> ParseRow(const std::vector<std::string>& header,
                            const std::vector<std::string>& fields) {
  if (fields.size() < header.size()) return std::nullopt;
  Row row;
  for (size_t i = 0; i < header.size(); ++i) {
    const auto value = ParseNumber(Trimmed(fields[i]));
    if (!value || *value < 0) return std::nullopt;
    row[header[i]] = *value;
  }
  for (const char* needed : {"ctx_tokens", "prefill_tps", "gen_tokens", "gen_tps"}) {
    if (!row.contains(needed)) return std::nullopt;
  }
  return row;
}

Result ResultOf(const Row& row, const std::string& source) {
  Result result;
  Cell& cell = result.cell;
  cell.kind = ResultKind::kDs4;
  cell.source = source;
  cell.concurrency = 1;
  cell.scenario = fmt::format("ctx{:.0f}", row.at("ctx_tokens"));
  cell.environment["load_tool"] = "ds4-bench";
  PlannedPhase phase;
  phase.name = "profiling";
  phase.concurrency = 1;
  result.plan.phases.push_back(phase);
  MetricMap& metrics = cell.metrics;
  metrics["request_count"] = Scalar(1.0, "requests");
  metrics["input_sequence_length"] = Scalar(row.at("ctx_tokens"), "tokens");
  metrics["output_sequence_length"] = Scalar(row.at("gen_tokens"), "tokens");
  metrics["prefill_throughput_per_user"] = Scalar(row.at("prefill_tps"), "tokens/sec/user");
  const double rate = row.at("gen_tps");
  if (rate > 0) {
    metrics["output_token_throughput_per_user"] = Scalar(rate, "tokens/sec/user");
    metrics["inter_token_latency"] = Scalar(kMsPerSecond / rate, "ms");
  }
  DeriveMetrics(result);
  return result;
}

}  // namespace

bool IsDs4Table(std::string_view text) {
  return text.starts_with(kFirstColumn) && text.find("gen_tps") < text.find('\n');
}

absl::StatusOr<std::vector<Result>> ReadDs4Table(std::string_view text,
                                                 const std::filesystem::path& file) {
  const std::string source = file.string();
  ASSIGN_OR_RETURN(const auto rows, ParseCsv(text, source));
  std::vector<Result> results;
  std::vector<std::string> problems;
  for (size_t i = 1; i < rows.size(); ++i) {
    if (const auto row = ParseRow(rows.front(), rows[i])) {
      results.push_back(ResultOf(*row, source));
    } else {
      problems.push_back(fmt::format(
          "{}, row {}: a column lacks a number of at least 0; the row is left out", source, i + 1));
    }
  }
  if (results.empty()) {
    return absl::DataLossError(problems.empty() ? source + " holds no row" : problems.front());
  }
  results.front().problems = std::move(problems);
  return results;
}

}  // namespace fulgur::bench

#include "bench/results/evalscope_reader.h"

#include <cmath>
#include <string>
#include <utility>

#include "bench/results/derive.h"
#include "bench/results/strings.h"
#include "fmt/format.h"
#include "io/json.h"

namespace fulgur::bench {
namespace {

struct Field {
  const char* key;
  const char* tag;
  const char* unit;
  double scale;
};

// In the summary and as columns of the percentiles.
constexpr Field kMeans[] = {
    {"Test Duration (s)", "benchmark_duration", "sec", 1.0},
    {"Success Requests", "request_count", "requests", 1.0},
    {"Failed Requests", "error_request_count", "requests", 1.0},
    {"Req Throughput (req/s)", "request_throughput", "requests/sec", 1.0},
    {"Output Throughput (tok/s)", "output_token_throughput", "tokens/sec", 1.0},
    {"Total Throughput (tok/s)", "total_token_throughput", "tokens/sec", 1.0},
    {"Avg Latency (s)", "request_latency", "ms", 1000.0},
    {"Avg TTFT (ms)", "time_to_first_token", "ms", 1.0},
    {"Avg TPOT (ms)", "inter_token_latency", "ms", 1.0},
    {"Avg ITL (ms)", "inter_chunk_latency", "ms", 1.0},
    {"Avg Input Tokens", "input_sequence_length", "tokens", 1.0},
    {"Avg Output Tokens", "output_sequence_length", "tokens", 1.0},
    {"Avg Decoded Tok/Iter", "fulgur_tokens_per_chunk", "tokens", 1.0}};

constexpr Field kColumns[] = {
    {"Latency (s)", "request_latency", "ms", 1000.0},
    {"TTFT (ms)", "time_to_first_token", "ms", 1.0},
    {"TPOT (ms)", "inter_token_latency", "ms", 1.0},
    {"ITL (ms)", "inter_chunk_latency", "ms", 1.0},
    {"Input tokens", "input_sequence_length", "tokens", 1.0},
    {"Output tokens", "output_sequence_length", "tokens", 1.0},
    {"Decode (tok/s)", "output_token_throughput_per_user", "tokens/sec/user", 1.0}};

// Averages of lengths are rounded to four decimals; their sums are whole numbers.
void SetTotal(const char* mean, const char* total, MetricMap& metrics) {
  const auto length = metrics.find(mean);
  const auto requests = metrics.find("request_count");
  if (length == metrics.end() || requests == metrics.end()) return;
  metrics[total] = Scalar(std::round(*length->second.avg * *requests->second.avg), "tokens");
}

void SetStatistic(const std::string& row, double value, MetricBlock& block) {
  if (row == "min") block.min = value;
  if (row == "max") block.max = value;
  if (row.empty() || row.back() != '%') return;
  const auto percent = ParseInteger(std::string_view(row).substr(0, row.size() - 1));
  if (percent && *percent > 0 && *percent < 100) {
    block.percentiles[static_cast<int>(*percent)] = value;
  }
}

}  // namespace

bool IsEvalscopeSummary(const JsonObject& root) {
  return NumberAt(root, "Success Requests") && NumberAt(root, "Test Duration (s)");
}

Result ReadEvalscopeSummary(const JsonObject& root, const std::filesystem::path& file) {
  Result result;
  Cell& cell = result.cell;
  cell.kind = ResultKind::kEvalscope;
  cell.source = file.string();
  cell.environment["load_tool"] = "evalscope";
  cell.environment["percentiles"] = "inverted distribution function";
  for (const Field& field : kMeans) {
    const auto value = NumberAt(root, field.key);
    if (value) cell.metrics[field.tag] = Scalar(*value * field.scale, field.unit);
  }
  SetTotal("output_sequence_length", "total_osl", cell.metrics);
  SetTotal("input_sequence_length", "total_isl", cell.metrics);
  result.window_s = NumberAt(root, "Test Duration (s)");
  PlannedPhase phase;
  phase.name = "profiling";
  phase.requests = IntegerAt(root, "Total Requests");
  phase.concurrency = IntegerAt(root, "Concurrency");
  const double rate = NumberAt(root, "Request Rate (req/s)").value_or(-1.0);
  if (rate > 0) phase.rate = rate;
  cell.concurrency = phase.concurrency;
  result.plan.phases.push_back(phase);
  DeriveMetrics(result);
  return result;
}

void AddEvalscopePercentiles(const JsonArray& rows, Result& result) {
  MetricMap& metrics = result.cell.metrics;
  for (const JsonElement element : rows) {
    JsonObject row;
    if (element.get(row) != simdjson::SUCCESS) continue;
    const std::string name = TextAt(row, "Percentiles");
    for (const Field& column : kColumns) {
      const auto value = NumberAt(row, column.key);
      if (!value) continue;
      MetricBlock& block = metrics[column.tag];
      block.unit = column.unit;
      SetStatistic(name, *value * column.scale, block);
    }
  }
}

Result ReadEvalscopeFolder(const JsonObject& root, const std::filesystem::path& file) {
  Result result = ReadEvalscopeSummary(root, file);
  const std::filesystem::path table = file.parent_path() / "benchmark_percentile.json";
  std::error_code ignored;
  if (std::filesystem::exists(table, ignored)) {
    const auto document = io::JsonDocument::ReadFile(table.string());
    JsonArray rows;
    if (!document.ok()) {
      result.problems.push_back(Sentence(document.status()));
    } else if (document->root().get(rows) == simdjson::SUCCESS) {
      AddEvalscopePercentiles(rows, result);
    } else {
      result.problems.push_back(fmt::format("{} is not a list of percentiles", table.string()));
    }
  }
  // The file has the percentiles of the rate per user, but not its mean.
  MetricMap& metrics = result.cell.metrics;
  const auto latency = metrics.find("inter_token_latency");
  MetricBlock& rate = metrics["output_token_throughput_per_user"];
  rate.unit = "tokens/sec/user";
  if (latency != metrics.end() && latency->second.avg.value_or(0.0) > 0) {
    rate.avg = 1000.0 / *latency->second.avg;
    result.cell.environment["rate_per_user"] = "1000 / mean inter-token latency";
  } else if (rate.percentiles.empty()) {
    metrics.erase("output_token_throughput_per_user");
  }
  DeriveMetrics(result);
  return result;
}

}  // namespace fulgur::bench

#include "bench/results/aisbench_reader.h"

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/status_macros.h"
#include "bench/results/csv.h"
#include "bench/results/derive.h"
#include "bench/results/strings.h"
#include "bench/results/units.h"
#include "fmt/format.h"
#include "io/json.h"
#include "io/mapped_file.h"

namespace fulgur::bench {
namespace {

struct Quantity {
  double value = 0.0;
  std::string unit;  // empty: a bare number
};

// "1240.1267 token/s", "2.5s" or "84".
std::optional<Quantity> ParseQuantity(std::string_view text) {
  text = Trimmed(text);
  const size_t end = std::min(text.find_first_not_of("0123456789.+-eE"), text.size());
  const auto value = ParseNumber(text.substr(0, end));
  if (!value) return std::nullopt;
  return Quantity{*value, std::string(Trimmed(text.substr(end)))};
}

// A stage "total" covers the whole run; "stable" is a window of full load.
std::optional<Quantity> QuantityAt(const JsonObject& root, const char* key, const char* stage) {
  const auto stages = ObjectAt(root, key);
  const auto field = stages ? FieldAt(*stages, stage) : std::nullopt;
  if (!field) return std::nullopt;
  if (const auto number = NumberOf(*field)) return Quantity{*number, ""};
  std::string_view text;
  if (field->get(text) != simdjson::SUCCESS) return std::nullopt;
  return ParseQuantity(text);
}

struct Common {
  const char* key;
  const char* tag;
  const char* unit;
};

constexpr Common kCommon[] = {{"Success Requests", "request_count", "requests"},
                              {"Failed Requests", "error_request_count", "requests"},
                              {"Total Input Tokens", "total_isl", "tokens"},
                              {"Total generated tokens", "total_osl", "tokens"},
                              {"Total Output Tokens", "total_osl", "tokens"},
                              {"Concurrency", "fulgur_mean_concurrency", "requests"},
                              {"Request Throughput", "request_throughput", "requests/sec"},
                              {"Input Token Throughput", "input_token_throughput", "tokens/sec"},
                              {"Output Token Throughput", "output_token_throughput", "tokens/sec"},
                              {"Total Token Throughput", "total_token_throughput", "tokens/sec"}};

// PrefillTokenThroughput and OutputTokenThroughput of one request are rates per user.
const std::map<std::string, Common>& Rows() {
  static const auto* rows = new std::map<std::string, Common>{
      {"E2EL", {"", "request_latency", "ms"}},
      {"TTFT", {"", "time_to_first_token", "ms"}},
      {"TPOT", {"", "inter_token_latency", "ms"}},
      {"ITL", {"", "inter_chunk_latency", "ms"}},
      {"InputTokens", {"", "input_sequence_length", "tokens"}},
      {"OutputTokens", {"", "output_sequence_length", "tokens"}},
      {"OutputTokenThroughput", {"", "e2e_output_token_throughput", "tokens/sec/user"}},
      {"PrefillTokenThroughput", {"", "prefill_throughput_per_user", "tokens/sec/user"}}};
  return *rows;
}

void SetStatistic(const std::string& column, double value, MetricBlock& block) {
  if (column == "Average") block.avg = value;
  if (column == "Min") block.min = value;
  if (column == "Max") block.max = value;
  if (column == "Median") block.percentiles[50] = value;
  if (column == "N") block.count = static_cast<int64_t>(value);
  if (!column.starts_with('P')) return;
  const auto percent = ParseInteger(std::string_view(column).substr(1));
  if (percent && *percent > 0 && *percent < 100) {
    block.percentiles[static_cast<int>(*percent)] = value;
  }
}

// A number of a time needs its unit: a table that mixes seconds and milliseconds says so per cell.
absl::StatusOr<double> InUnitOf(const Common& row, const Quantity& quantity) {
  if (std::string_view(row.unit) != "ms" || quantity.unit.empty()) return quantity.value;
  ASSIGN_OR_RETURN(const double scale, MillisecondsIn(quantity.unit));
  return quantity.value * scale;
}

absl::Status AddRow(const std::vector<std::string>& header, const std::vector<std::string>& cells,
                    Result& result) {
  const auto known = Rows().find(cells.front());
  if (known == Rows().end()) return absl::OkStatus();
  MetricBlock block;
  block.unit = known->second.unit;
  for (size_t i = 1; i < cells.size() && i < header.size(); ++i) {
    const auto quantity = ParseQuantity(cells[i]);
    if (header[i] == "Stage" || !quantity) continue;
    if (header[i] == "N" && !(quantity->value >= 0 && quantity->value < 1e15)) continue;
    ASSIGN_OR_RETURN(const double value, header[i] == "N" ? absl::StatusOr<double>(quantity->value)
                                                          : InUnitOf(known->second, *quantity));
    SetStatistic(header[i], value, block);
  }
  result.cell.metrics[known->second.tag] = std::move(block);
  return absl::OkStatus();
}

std::string StageOf(const JsonObject& root) {
  const auto throughput = ObjectAt(root, "Output Token Throughput");
  return throughput && !FieldAt(*throughput, "total") && FieldAt(*throughput, "stable") ? "stable"
                                                                                        : "total";
}

}  // namespace

bool IsAisbench(const JsonObject& root) {
  return ObjectAt(root, "Output Token Throughput") &&
         (ObjectAt(root, "Request Throughput") || ObjectAt(root, "Benchmark Duration"));
}

Result ReadAisbenchSummary(const JsonObject& root, const std::filesystem::path& file) {
  Result result;
  Cell& cell = result.cell;
  cell.kind = ResultKind::kAisbench;
  cell.source = file.string();
  const std::string stage = StageOf(root);
  cell.environment["load_tool"] = "AISBench";
  if (stage != "total") cell.environment["stage"] = stage;
  for (const Common& common : kCommon) {
    const auto quantity = QuantityAt(root, common.key, stage.c_str());
    if (quantity) cell.metrics[common.tag] = Scalar(quantity->value, common.unit);
  }
  if (const auto duration = QuantityAt(root, "Benchmark Duration", stage.c_str())) {
    const auto scale = MillisecondsIn(duration->unit.empty() ? "ms" : duration->unit);
    if (scale.ok()) {
      result.window_s = duration->value * *scale / 1000.0;
      cell.metrics["benchmark_duration"] = Scalar(*result.window_s, "sec");
    } else {
      result.problems.push_back(
          fmt::format("{}: Benchmark Duration: {}", cell.source, Sentence(scale.status())));
    }
  }
  if (const auto limit = QuantityAt(root, "Max Concurrency", stage.c_str())) {
    if (limit->value >= 1 && limit->value < 1e9) {
      cell.concurrency = static_cast<int64_t>(limit->value);
    }
  }
  PlannedPhase phase;
  phase.name = "profiling";
  phase.concurrency = cell.concurrency;
  result.plan.phases.push_back(phase);
  MarkHarmonicRate(result);
  DeriveMetrics(result);
  return result;
}

absl::Status AddAisbenchTable(std::string_view csv, std::string_view source, Result& result) {
  ASSIGN_OR_RETURN(const auto rows, ParseCsv(csv, source));
  if (rows.empty() || rows.front().front() != "Performance Parameters") {
    return absl::InvalidArgumentError(
        fmt::format("{} is no table of AISBench: its header does not begin with "
                    "\"Performance Parameters\"",
                    source));
  }
  for (size_t i = 1; i < rows.size(); ++i) {
    const absl::Status status = AddRow(rows.front(), rows[i], result);
    if (!status.ok()) {
      result.problems.push_back(fmt::format("{}, row {}: {}; the row is left out", source,
                                            io::Shortened(rows[i].front()), Sentence(status)));
    }
  }
  return absl::OkStatus();
}

Result ReadAisbenchFolder(const JsonObject& root, const std::filesystem::path& file) {
  Result result = ReadAisbenchSummary(root, file);
  const std::filesystem::path table = std::filesystem::path(file).replace_extension(".csv");
  std::error_code ignored;
  if (!std::filesystem::exists(table, ignored)) return result;
  const auto mapped = io::MappedFile::Open(table.string());
  const absl::Status status =
      mapped.ok() ? AddAisbenchTable(mapped->text(), table.string(), result) : mapped.status();
  if (!status.ok()) result.problems.push_back(Sentence(status));
  MarkHarmonicRate(result);
  DeriveMetrics(result);
  return result;
}

}  // namespace fulgur::bench

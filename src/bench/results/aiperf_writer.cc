#include "bench/results/aiperf_writer.h"

#include <cmath>
#include <set>
#include <string_view>

#include "absl/time/time.h"
#include "base/status_macros.h"
#include "bench/results/error_groups.h"
#include "bench/results/metric_names.h"
#include "bench/results/request_lines.h"
#include "bench/results/result.h"
#include "bench/results/text_file.h"
#include "fmt/format.h"
#include "nlohmann/json.hpp"

namespace fulgur::bench {
namespace {

using OrderedJson = nlohmann::ordered_json;

// The release whose shape is written, and who wrote it.
constexpr std::string_view kVersion = "0.13.0+fulgur";
constexpr std::string_view kSchema = "1.4";

// aiperf writes these before anything else, in this order.
constexpr std::string_view kLeadingTags[] = {"request_throughput",
                                             "request_latency",
                                             "request_count",
                                             "time_to_first_token",
                                             "time_to_second_token",
                                             "inter_token_latency",
                                             "output_token_throughput",
                                             "output_token_throughput_per_user",
                                             "output_sequence_length",
                                             "input_sequence_length",
                                             "goodput",
                                             "good_request_count",
                                             "output_token_count",
                                             "reasoning_token_count",
                                             "inter_chunk_latency",
                                             "total_output_tokens",
                                             "total_reasoning_tokens",
                                             "benchmark_duration",
                                             "total_isl",
                                             "total_osl",
                                             "error_request_count",
                                             "error_isl",
                                             "total_error_isl"};

void SetFinite(OrderedJson& json, const std::string& key, const std::optional<double>& value) {
  if (value && std::isfinite(*value)) json[key] = *value;
}

OrderedJson BlockJson(const MetricBlock& block) {
  OrderedJson json = {{"unit", block.unit}};
  SetFinite(json, "avg", block.avg);
  for (const auto& [q, value] : block.percentiles) SetFinite(json, fmt::format("p{}", q), value);
  SetFinite(json, "min", block.min);
  SetFinite(json, "max", block.max);
  SetFinite(json, "std", block.std);
  if (block.count) json["count"] = *block.count;
  SetFinite(json, "sum", block.sum);
  return json;
}

// aiperf has no block for a metric that nothing was measured of.
bool IsEmpty(const MetricBlock& block) {
  return !block.avg && !block.min && block.percentiles.empty();
}

OrderedJson LengthJson(const LengthSpec& length) {
  OrderedJson json = {{"mean", length.mean}};
  if (length.stddev != 0) json["stddev"] = length.stddev;
  return json;
}

OrderedJson PromptsJson(const RunPlan& plan) {
  OrderedJson json = OrderedJson::object();
  if (plan.input_length) json["isl"] = LengthJson(*plan.input_length);
  if (plan.output_length) json["osl"] = LengthJson(*plan.output_length);
  for (const LengthPair& pair : plan.sequence_distribution) {
    json["sequence_distribution"].push_back({{"isl", LengthJson(pair.input)},
                                             {"osl", LengthJson(pair.output)},
                                             {"probability", pair.probability}});
  }
  return json;
}

OrderedJson PhaseJson(const PlannedPhase& phase) {
  OrderedJson json = {{"name", phase.name}, {"kind", phase.name}, {"type", phase.type}};
  if (phase.name == "warmup") json["exclude_from_results"] = true;
  if (phase.requests) json["requests"] = *phase.requests;
  if (phase.duration_s) json["duration"] = *phase.duration_s;
  if (phase.concurrency) json["concurrency"] = *phase.concurrency;
  if (phase.rate) json["rate"] = *phase.rate;
  return json;
}

OrderedJson EndpointJson(const RunPlan& plan) {
  OrderedJson json = {
      {"urls", plan.urls}, {"type", plan.endpoint_type}, {"streaming", plan.streaming}};
  if (plan.per_chunk_usage) json["per_chunk_usage"] = true;
  for (const auto& [name, text] : plan.extra) {
    OrderedJson value = OrderedJson::parse(text, nullptr, false);
    json["extra"][name] = value.is_discarded() ? OrderedJson(text) : value;
  }
  return json;
}

OrderedJson DatasetJson(const RunPlan& plan) {
  OrderedJson json = {{"name", "main"}, {"type", "synthetic"}};
  if (plan.dataset_entries) json["entries"] = *plan.dataset_entries;
  if (plan.random_seed) json["random_seed"] = *plan.random_seed;
  json["prompts"] = PromptsJson(plan);
  return json;
}

// aiperf refuses keys that it does not know in here; what else there is to say is in
// fulgur_run.json.
OrderedJson InputConfigJson(const RunPlan& plan) {
  OrderedJson models = OrderedJson::array();
  for (const std::string& model : plan.models) models.push_back({{"name", model}});
  OrderedJson json = {{"models", {{"items", models}}}, {"endpoint", EndpointJson(plan)}};
  json["datasets"].push_back(DatasetJson(plan));
  json["phases"] = OrderedJson::array();
  for (const PlannedPhase& phase : plan.phases) json["phases"].push_back(PhaseJson(phase));
  for (const auto& [tag, limit] : plan.objectives) json["slos"][tag] = limit;
  if (!plan.tokenizer.empty()) json["tokenizer"] = {{"name", plan.tokenizer}};
  return json;
}

OrderedJson RunInfoJson(const RunPlan& plan) {
  OrderedJson json = {{"benchmark_id", plan.benchmark_id}};
  if (plan.random_seed) json["random_seed"] = *plan.random_seed;
  json["trial"] = plan.trial;
  json["cli_command"] = plan.command_line;
  json["fulgur_time_zone"] = "UTC";
  return json;
}

OrderedJson ErrorSummaryJson(const Cell& cell) {
  OrderedJson summary = OrderedJson::array();
  for (const ErrorGroup& group : cell.errors) {
    OrderedJson details = OrderedJson::object();
    if (group.code) details["code"] = *group.code;
    details["type"] = group.type;
    details["message"] = group.message;
    summary.push_back({{"error_details", details}, {"count", group.count}});
  }
  return summary;
}

std::string FormatTime(int64_t wall_ns) {
  return absl::FormatTime("%Y-%m-%dT%H:%M:%E6S", absl::FromUnixNanos(wall_ns), absl::UTCTimeZone());
}

const PhaseWindow* Profiling(const Cell& cell) {
  for (const PhaseWindow& phase : cell.phases) {
    if (phase.name == "profiling") return &phase;
  }
  return nullptr;
}

OrderedJson TelemetryJson(const Cell& cell) {
  OrderedJson summary = {{"endpoints_configured", OrderedJson::array()},
                         {"endpoints_successful", OrderedJson::array()}};
  if (const PhaseWindow* phase = Profiling(cell)) {
    summary["start_time"] = FormatTime(phase->wall_start_ns);
    summary["end_time"] = FormatTime(phase->wall_end_ns);
  }
  return {{"summary", summary},
          {"endpoints", OrderedJson::object()},
          {"error_summary", OrderedJson::array()}};
}

OrderedJson SummaryJson(const RunPlan& plan, const Cell& cell) {
  OrderedJson json = {{"schema_version", kSchema},
                      {"aiperf_version", kVersion},
                      {"benchmark_id", plan.benchmark_id}};
  std::set<std::string_view> written;
  for (const std::string_view tag : kLeadingTags) {
    const auto it = cell.metrics.find(std::string(tag));
    if (it == cell.metrics.end() || IsEmpty(it->second)) continue;
    json[it->first] = BlockJson(it->second);
    written.insert(tag);
  }
  json["telemetry_data"] = TelemetryJson(cell);
  json["input_config"] = InputConfigJson(plan);
  json["run_info"] = RunInfoJson(plan);
  json["was_cancelled"] = cell.was_cancelled;
  json["is_complete"] = cell.is_complete;
  json["error_summary"] = ErrorSummaryJson(cell);
  if (const PhaseWindow* phase = Profiling(cell)) {
    json["start_time"] = FormatTime(phase->wall_start_ns);
    json["end_time"] = FormatTime(phase->wall_end_ns);
  }
  for (const auto& [tag, block] : cell.warmup_metrics) {
    if (!IsEmpty(block)) json["warmup_metrics"][tag] = BlockJson(block);
  }
  for (const auto& [tag, block] : cell.metrics) {
    if (!written.contains(tag) && !IsEmpty(block)) json[tag] = BlockJson(block);
  }
  return json;
}

// Names hold no line ends, but may hold commas and quotes.
std::string CsvText(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char letter : text)
    quoted += letter == '"' ? std::string("\"\"") : std::string(1, letter);
  return quoted + "\"";
}

std::string CsvNumber(const std::optional<double>& value) {
  return value && std::isfinite(*value) ? fmt::format("{:.2f}", *value) : "";
}

std::string CsvRow(const std::string& tag, const MetricBlock& block) {
  std::string row = CsvText(MetricNameWithUnit(tag, block.unit));
  for (const auto& value : {block.avg, block.min, block.max, block.sum}) {
    row += "," + CsvNumber(value);
  }
  for (const int q : kPercentiles) {
    const auto it = block.percentiles.find(q);
    row += it == block.percentiles.end() ? "," : "," + CsvNumber(it->second);
  }
  return row + "," + CsvNumber(block.std) + "\r\n";
}

absl::StatusOr<std::ofstream> OpenForWriting(const std::filesystem::path& file) {
  std::ofstream stream(file, std::ios::binary);
  if (!stream) {
    return absl::UnavailableError(fmt::format("{} cannot be created", file.string()));
  }
  return stream;
}

absl::Status CheckWritten(const std::ofstream& stream, const std::filesystem::path& file) {
  if (stream) return absl::OkStatus();
  return absl::UnavailableError(
      fmt::format("{} cannot be written; is the disk full?", file.string()));
}

}  // namespace

absl::Status WriteAiperfSummary(const std::filesystem::path& file, const RunPlan& plan,
                                const Cell& cell) {
  const OrderedJson json = SummaryJson(plan, cell);
  return WriteTextFile(file,
                       json.dump(2, ' ', false, OrderedJson::error_handler_t::replace) + "\n");
}

absl::Status WriteAiperfTimeSlices(const std::filesystem::path& file,
                                   const std::vector<TimeSlice>& slices) {
  OrderedJson json = {{"timeslices", OrderedJson::array()},
                      {"input_config", OrderedJson::object()}};
  for (const TimeSlice& slice : slices) {
    OrderedJson one = {{"start_ns", slice.start_ns}, {"end_ns", slice.end_ns}};
    if (!slice.complete) one["is_complete"] = false;
    for (const auto& [tag, block] : slice.metrics) {
      if (!IsEmpty(block)) one[tag] = BlockJson(block);
    }
    json["timeslices"].push_back(std::move(one));
  }
  return WriteTextFile(file, json.dump(2) + "\n");
}

absl::Status WriteAiperfCsv(const std::filesystem::path& file, const Cell& cell) {
  std::string distributions = "Metric,avg,min,max,sum,p1,p5,p10,p25,p50,p75,p90,p95,p99,std\r\n";
  std::string scalars = "Metric,Value\r\n";
  for (const auto& [tag, block] : cell.metrics) {
    if (!block.percentiles.empty()) {
      distributions += CsvRow(tag, block);
    } else if (block.avg) {
      scalars += CsvText(MetricNameWithUnit(tag, block.unit)) + "," + CsvNumber(block.avg) + "\r\n";
    }
  }
  const std::string_view telemetry =
      "Endpoint,GPU_Index,GPU_Name,GPU_UUID,Platform,Metric,avg,min,max,sum,p1,p5,p10,p25,p50,p75,"
      "p90,p95,p99,std\r\n";
  return WriteTextFile(file, fmt::format("{}\r\n{}\r\n\r\n{}", distributions, scalars, telemetry));
}

absl::StatusOr<RecordWriter> RecordWriter::Open(const std::filesystem::path& file) {
  ASSIGN_OR_RETURN(std::ofstream stream, OpenForWriting(file));
  return RecordWriter(file, std::move(stream));
}

absl::Status RecordWriter::Append(const RequestRecord& record) {
  if (record.warmup) saw_warmup_ = true;
  const int phase_index = !record.warmup && saw_warmup_ ? 1 : 0;
  stream_ << RequestLineToJson(ToRequestLine(record), phase_index) << '\n';
  return CheckWritten(stream_, file_);
}

absl::Status RecordWriter::Close() {
  stream_.close();
  return CheckWritten(stream_, file_);
}

absl::StatusOr<InputsWriter> InputsWriter::Open(const std::filesystem::path& file) {
  ASSIGN_OR_RETURN(std::ofstream stream, OpenForWriting(file));
  stream << "{\n  \"data\": [";
  return InputsWriter(file, std::move(stream));
}

absl::Status InputsWriter::Append(const std::string& session_id,
                                  const std::vector<std::string>& payloads) {
  const std::string id =
      OrderedJson(session_id).dump(-1, ' ', false, OrderedJson::error_handler_t::replace);
  stream_ << (first_ ? "\n" : ",\n") << "    {\"session_id\": " << id << ", \"payloads\": [";
  first_ = false;
  for (size_t i = 0; i < payloads.size(); ++i) stream_ << (i == 0 ? "" : ", ") << payloads[i];
  stream_ << "]}";
  return CheckWritten(stream_, file_);
}

absl::Status InputsWriter::Close() {
  stream_ << "\n  ]\n}\n";
  stream_.close();
  return CheckWritten(stream_, file_);
}

std::vector<ErrorGroup> GroupErrors(const std::vector<RequestRecord>& records) {
  ErrorGrouper grouper;
  for (const RequestRecord& record : records) {
    const std::optional<RequestError> failure = FailureOf(record);
    if (record.warmup || !failure) continue;
    grouper.Add({failure->code, failure->type, failure->message, 1});
  }
  return grouper.TakeGroups();
}

}  // namespace fulgur::bench

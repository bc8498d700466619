#include "bench/results/aiperf_reader.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/time/time.h"
#include "base/status_macros.h"
#include "bench/results/aiperf_plan.h"
#include "bench/results/derive.h"
#include "bench/results/run_file.h"
#include "bench/results/strings.h"
#include "bench/results/telemetry_reader.h"
#include "bench/results/units.h"
#include "fmt/format.h"
#include "fmt/ranges.h"
#include "io/json.h"
#include "io/mapped_file.h"

namespace fulgur::bench {
namespace {

// A block needs a unit and at least one number; `adj_*` blocks have no average.
std::optional<MetricBlock> ReadBlock(const JsonElement& element) {
  JsonObject object;
  std::string_view unit;
  if (element.get(object) != simdjson::SUCCESS) return std::nullopt;
  if (object.at_key("unit").get(unit) != simdjson::SUCCESS) return std::nullopt;
  MetricBlock block;
  block.unit = unit;
  block.avg = NumberAt(object, "avg");
  block.min = NumberAt(object, "min");
  block.max = NumberAt(object, "max");
  block.std = NumberAt(object, "std");
  block.sum = NumberAt(object, "sum");
  block.count = IntegerAt(object, "count");
  for (const int q : kPercentiles) {
    if (const auto value = NumberAt(object, fmt::format("p{}", q))) block.percentiles[q] = *value;
  }
  if (!block.avg && !block.min && !block.max && block.percentiles.empty()) return std::nullopt;
  return block;
}

void ReadBlocks(const JsonObject& object, const std::string& source, MetricMap& metrics,
                std::vector<std::string>& problems) {
  for (const auto field : object) {
    auto block = ReadBlock(field.value);
    if (!block) continue;
    const std::string tag(field.key);
    if (const absl::Status status = ConvertUnit(tag, *block); !status.ok()) {
      problems.push_back(fmt::format("{}: {}; the metric is left out", source, Sentence(status)));
    } else if (!metrics.emplace(tag, *std::move(block)).second) {
      problems.push_back(
          fmt::format("{}: {} occurs twice; the first is used", source, io::Shortened(tag)));
    }
  }
}

RequestError ReadError(const JsonObject& object) {
  RequestError error;
  if (const auto code = IntegerAt(object, "code"); code && *code >= 0 && *code < 1000) {
    error.code = static_cast<int>(*code);
  }
  error.type = TextAt(object, "type");
  error.message = TextAt(object, "message");
  return error;
}

void ReadErrors(const JsonObject& root, Cell& cell) {
  for (const JsonObject& entry : ObjectsAt(root, "error_summary")) {
    const auto details = ObjectAt(entry, "error_details");
    if (!details) continue;
    const RequestError error = ReadError(*details);
    cell.errors.push_back(
        {error.code, error.type, error.message, IntegerAt(entry, "count").value_or(1)});
  }
}

std::optional<absl::Time> TimeAt(const JsonObject& root, const char* key) {
  absl::Time time;
  std::string error;
  const std::string text = TextAt(root, key);
  if (text.empty() ||
      !absl::ParseTime("%Y-%m-%dT%H:%M:%E*S", text, absl::UTCTimeZone(), &time, &error)) {
    return std::nullopt;
  }
  return time;
}

// The zone of these times is not in the file, so the window's length is sure and its place is not.
void ReadWindow(const JsonObject& root, Result& result) {
  const auto start = TimeAt(root, "start_time");
  const auto end = TimeAt(root, "end_time");
  if (!start || !end) return;
  if (*end < *start) {
    result.problems.push_back(fmt::format(
        "{}: end_time lies before start_time; the window is left out", result.cell.source));
    return;
  }
  result.window_s = absl::ToDoubleSeconds(*end - *start);
  result.cell.phases.push_back({"profiling", absl::ToUnixNanos(*start), absl::ToUnixNanos(*end)});
}

std::string Describe(const LengthSpec& length) {
  return length.stddev == 0 ? fmt::format("{}", length.mean)
                            : fmt::format("{} +- {}", length.mean, length.stddev);
}

void SetLengths(const RunPlan& plan, std::map<std::string, std::string>& environment) {
  if (plan.input_length) environment["input_length"] = Describe(*plan.input_length);
  if (plan.output_length) environment["output_length"] = Describe(*plan.output_length);
  if (plan.sequence_distribution.empty()) return;
  std::vector<std::string> parts;
  for (const LengthPair& pair : plan.sequence_distribution) {
    parts.push_back(
        fmt::format("{}, {} : {}", Describe(pair.input), Describe(pair.output), pair.probability));
  }
  environment["sequence_distribution"] = fmt::format("{}", fmt::join(parts, "; "));
}

void SetEnvironment(const RunPlan& plan, Cell& cell) {
  auto& environment = cell.environment;
  const auto set = [&environment](const char* key, const std::string& value) {
    if (!value.empty()) environment[key] = value;
  };
  set("model", fmt::format("{}", fmt::join(plan.models, ", ")));
  set("endpoint_type", plan.endpoint_type);
  if (!plan.endpoint_type.empty()) set("streaming", plan.streaming ? "yes" : "no");
  set("load_tool", cell.tool_version.empty() ? "aiperf" : "aiperf " + cell.tool_version);
  SetLengths(plan, environment);
  for (const auto& [name, value] : plan.extra) environment["extra." + name] = value;
  for (const PlannedPhase& phase : plan.phases) {
    if (phase.name != "profiling") continue;
    set("load", phase.type);
    if (phase.rate) set("request_rate", fmt::format("{}", *phase.rate));
  }
}

absl::Status ReadMetric(const std::string& tag, const JsonElement& element, RequestLine& line) {
  JsonObject object;
  if (element.get(object) != simdjson::SUCCESS) return absl::OkStatus();
  MetricBlock block;
  block.unit = TextAt(object, "unit");
  if (tag == "inter_chunk_latency") {
    ASSIGN_OR_RETURN(const double scale, MillisecondsIn(block.unit));
    line.metrics.inter_chunk_latency_ms =
        NumbersAt(object, "value").value_or(std::vector<double>());
    for (double& gap : line.metrics.inter_chunk_latency_ms) gap *= scale;
    return absl::OkStatus();
  }
  block.avg = NumberAt(object, "value");
  if (!block.avg) return absl::OkStatus();
  RETURN_IF_ERROR(ConvertUnit(tag, block));
  line.metrics.values[tag] = *block.avg;
  return absl::OkStatus();
}

void ReadMetadata(const JsonObject& metadata, RequestLine& line) {
  line.session = IntegerAt(metadata, "session_num").value_or(0);
  const auto turn = IntegerAt(metadata, "turn_index").value_or(0);
  line.turn = turn >= 0 && turn < 1'000'000 ? static_cast<int32_t>(turn) : 0;
  line.warmup = TextAt(metadata, "benchmark_phase") == "warmup";
  line.cancelled = BoolAt(metadata, "was_cancelled").value_or(false);
  line.request_id = TextAt(metadata, "x_request_id");
  line.conversation_id = TextAt(metadata, "conversation_id");
  line.scheduled_ns = IntegerAt(metadata, "credit_issued_ns");
  line.start_ns = IntegerAt(metadata, "request_start_ns").value_or(0);
  line.ack_ns = IntegerAt(metadata, "request_ack_ns");
  line.end_ns = IntegerAt(metadata, "request_end_ns").value_or(line.start_ns);
}

// Requests carry wall-clock times since the epoch, so their span is the surer window. aiperf's
// window opens just before the first and closes just after the last.
void SetPhasesFromRequests(Result& result) {
  for (const bool warmup : {true, false}) {
    PhaseWindow window{warmup ? "warmup" : "profiling", INT64_MAX, 0};
    for (const RequestLine& request : result.requests) {
      if (request.warmup != warmup || request.start_ns <= 0) continue;
      window.wall_start_ns = std::min(window.wall_start_ns, request.start_ns);
      window.wall_end_ns = std::max(window.wall_end_ns, request.end_ns);
    }
    if (window.wall_end_ns <= window.wall_start_ns) continue;
    std::erase_if(result.cell.phases,
                  [&window](const PhaseWindow& phase) { return phase.name == window.name; });
    result.cell.phases.push_back(window);
  }
}

// Bodies whose least number of tokens is above the most.
int64_t CountImpossible(const JsonObject& inputs) {
  int64_t count = 0;
  for (const JsonObject& session : ObjectsAt(inputs, "data")) {
    for (const JsonObject& body : ObjectsAt(session, "payloads")) {
      const auto least = IntegerAt(body, "min_tokens");
      auto most = IntegerAt(body, "max_completion_tokens");
      if (!most) most = IntegerAt(body, "max_tokens");
      if (least && most && *least > *most) ++count;
    }
  }
  return count;
}

// The bodies can be many megabytes: they are only looked at if a server refused some.
void ReadInputs(const std::filesystem::path& file, Result& result) {
  const bool refused = std::any_of(result.cell.errors.begin(), result.cell.errors.end(),
                                   [](const ErrorGroup& group) { return group.code == 400; });
  std::error_code ignored;
  if (!refused || !std::filesystem::exists(file, ignored)) return;
  const auto document = io::JsonDocument::ReadFile(file.string());
  JsonObject root;
  if (!document.ok()) {
    result.problems.push_back(Sentence(document.status()));
  } else if (document->root().get(root) == simdjson::SUCCESS) {
    result.impossible_requests = CountImpossible(root);
  }
}

std::filesystem::path RequestsBeside(const std::filesystem::path& summary) {
  if (summary.filename() == "profile_export_aiperf.json") {
    return summary.parent_path() / "profile_export.jsonl";
  }
  return std::filesystem::path(summary).replace_extension(".jsonl");
}

}  // namespace

bool IsAiperfSummary(const JsonObject& root) {
  for (const char* tag : {"benchmark_duration", "request_throughput", "request_latency"}) {
    const auto field = FieldAt(root, tag);
    if (field && ReadBlock(*field)) return true;
  }
  return false;
}

Result ReadAiperfSummary(const JsonObject& root, const std::filesystem::path& file) {
  Result result;
  Cell& cell = result.cell;
  cell.kind = ResultKind::kAiperf;
  cell.source = file.string();
  cell.tool_version = TextAt(root, "aiperf_version");
  ReadBlocks(root, cell.source, cell.metrics, result.problems);
  if (const auto warmup = ObjectAt(root, "warmup_metrics")) {
    ReadBlocks(*warmup, cell.source + ", warmup_metrics", cell.warmup_metrics, result.problems);
  }
  ReadErrors(root, cell);
  ReadWindow(root, result);
  cell.was_cancelled = BoolAt(root, "was_cancelled").value_or(false);
  cell.is_complete = BoolAt(root, "is_complete").value_or(true);
  result.plan = ReadRunPlan(root);
  cell.concurrency = PlannedConcurrency(result.plan);
  cell.repetition = result.plan.trial;
  SetEnvironment(result.plan, cell);
  result.utilisation = ReadTelemetrySummary(root);
  DeriveMetrics(result);
  return result;
}

Result ReadAiperfFolder(const JsonObject& root, const std::filesystem::path& file) {
  Result result = ReadAiperfSummary(root, file);
  const std::filesystem::path requests = RequestsBeside(file);
  std::error_code ignored;
  if (std::filesystem::exists(requests, ignored)) {
    const auto mapped = io::MappedFile::Open(requests.string());
    if (mapped.ok()) {
      ReadRequestLines(mapped->text(), requests.string(), result);
    } else {
      result.problems.push_back(Sentence(mapped.status()));
    }
    DeriveMetrics(result);
  }
  ReadInputs(file.parent_path() / "inputs.json", result);
  const std::filesystem::path server = file.parent_path() / "server_metrics_export.json";
  if (std::filesystem::exists(server, ignored)) ReadServerMetrics(server, result);
  const std::filesystem::path run = file.parent_path() / "fulgur_run.json";
  if (std::filesystem::exists(run, ignored)) ReadRunFile(run, result);
  return result;
}

absl::StatusOr<std::vector<TimeSlice>> ReadTimeSlices(const std::filesystem::path& file) {
  ASSIGN_OR_RETURN(const io::JsonDocument document, io::JsonDocument::ReadFile(file.string()));
  ASSIGN_OR_RETURN(const JsonObject root, io::RootObject(document, file.string()));
  std::vector<TimeSlice> slices;
  std::vector<std::string> problems;
  for (const JsonObject& object : ObjectsAt(root, "timeslices")) {
    TimeSlice slice;
    slice.start_ns = IntegerAt(object, "start_ns").value_or(0);
    slice.end_ns = IntegerAt(object, "end_ns").value_or(0);
    slice.complete = BoolAt(object, "is_complete").value_or(true);
    ReadBlocks(object, file.string(), slice.metrics, problems);
    if (slice.start_ns > 0 && slice.end_ns > slice.start_ns) slices.push_back(std::move(slice));
  }
  if (slices.empty()) {
    return absl::NotFoundError(fmt::format("{} holds no time slice", file.string()));
  }
  return slices;
}

absl::StatusOr<RequestLine> ParseRequestLine(std::string_view text) {
  ASSIGN_OR_RETURN(const io::JsonDocument document, io::JsonDocument::Parse(text, "the line"));
  ASSIGN_OR_RETURN(const JsonObject root, io::RootObject(document, "the line"));
  const auto metadata = ObjectAt(root, "metadata");
  const auto metrics = ObjectAt(root, "metrics");
  if (!metadata || !metrics) {
    return absl::InvalidArgumentError("the line lacks \"metadata\" or \"metrics\"");
  }
  RequestLine line;
  ReadMetadata(*metadata, line);
  for (const auto field : *metrics) {
    // Traces of the HTTP client are many and compared nowhere.
    if (field.key.starts_with("http_req_")) continue;
    RETURN_IF_ERROR(ReadMetric(std::string(field.key), field.value, line));
  }
  if (const auto error = ObjectAt(root, "error")) line.error = ReadError(*error);
  return line;
}

void ReadRequestLines(std::string_view text, std::string_view source, Result& result) {
  int64_t number = 0;
  int64_t broken = 0;
  std::string first_problem;
  while (!text.empty()) {
    const std::string_view line = TakeLine(text);
    ++number;
    if (Trimmed(line).empty()) continue;
    auto parsed = ParseRequestLine(line);
    if (parsed.ok()) {
      result.requests.push_back(*std::move(parsed));
    } else if (++broken == 1) {
      first_problem = fmt::format("line {}: {}", number, Sentence(parsed.status()));
    }
  }
  if (broken > 0) {
    result.problems.push_back(
        fmt::format("{}: {} line(s) skipped; {}", source, broken, first_problem));
  }
  SetPhasesFromRequests(result);
}

}  // namespace fulgur::bench

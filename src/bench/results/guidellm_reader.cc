#include "bench/results/guidellm_reader.h"

#include <cmath>
#include <string>
#include <utility>

#include "bench/results/derive.h"
#include "fmt/format.h"

namespace fulgur::bench {
namespace {

constexpr double kMsPerSecond = 1000.0;

std::optional<JsonObject> Successful(const JsonObject& metrics, const char* name) {
  const auto metric = ObjectAt(metrics, name);
  return metric ? ObjectAt(*metric, "successful") : std::nullopt;
}

// Percentiles are of the inverted distribution function, not interpolated.
void ReadDistribution(const JsonObject& metrics, const char* name, double scale, const char* tag,
                      std::string_view unit, MetricMap& into) {
  const auto source = Successful(metrics, name);
  if (!source || !NumberAt(*source, "mean")) return;
  const auto scaled = [&](const JsonObject& object, const std::string& key) {
    auto value = NumberAt(object, key);
    if (value) *value *= scale;
    return value;
  };
  MetricBlock block;
  block.unit = unit;
  block.avg = scaled(*source, "mean");
  block.min = scaled(*source, "min");
  block.max = scaled(*source, "max");
  block.std = scaled(*source, "std_dev");
  block.sum = scaled(*source, "total_sum");
  block.count = IntegerAt(*source, "count");
  if (const auto percentiles = ObjectAt(*source, "percentiles")) {
    for (const int q : kPercentiles) {
      const auto value = scaled(*percentiles, fmt::format("p{:02}", q));
      if (value) block.percentiles[q] = *value;
    }
  }
  into[tag] = std::move(block);
}

void ReadMean(const JsonObject& metrics, const char* name, const char* tag, std::string_view unit,
              MetricMap& into) {
  const auto source = Successful(metrics, name);
  const auto mean = source ? NumberAt(*source, "mean") : std::nullopt;
  if (mean) into[tag] = Scalar(*mean, unit);
}

void ReadCounts(const JsonObject& metrics, MetricMap& into) {
  const auto totals = ObjectAt(metrics, "request_totals");
  if (!totals) return;
  if (const auto count = NumberAt(*totals, "successful")) {
    into["request_count"] = Scalar(*count, "requests");
  }
  if (const auto count = NumberAt(*totals, "errored")) {
    into["error_request_count"] = Scalar(*count, "requests");
  }
}

void ReadMetrics(const JsonObject& metrics, MetricMap& into) {
  ReadCounts(metrics, into);
  ReadDistribution(metrics, "time_to_first_token_ms", 1.0, "time_to_first_token", "ms", into);
  ReadDistribution(metrics, "time_to_first_output_token_ms", 1.0, "time_to_first_output_token",
                   "ms", into);
  ReadDistribution(metrics, "inter_token_latency_ms", 1.0, "inter_token_latency", "ms", into);
  ReadDistribution(metrics, "request_latency", kMsPerSecond, "request_latency", "ms", into);
  ReadDistribution(metrics, "prompt_token_count", 1.0, "input_sequence_length", "tokens", into);
  ReadDistribution(metrics, "output_token_count", 1.0, "output_sequence_length", "tokens", into);
  ReadMean(metrics, "requests_per_second", "request_throughput", "requests/sec", into);
  ReadMean(metrics, "output_tokens_per_second", "output_token_throughput", "tokens/sec", into);
}

// Its own inter-token latency is a mean over tokens, so 1000 / it is the token-weighted rate.
void KeepTokenWeighted(Result& result) {
  MetricMap& metrics = result.cell.metrics;
  const auto it = metrics.find("inter_token_latency");
  if (it == metrics.end() || !it->second.avg || *it->second.avg <= 0) return;
  metrics["fulgur_per_user_token_weighted"] =
      Scalar(kMsPerSecond / *it->second.avg, "tokens/sec/user");
  result.cell.environment["inter_token_latency"] = "weighted by tokens";
  result.cell.environment["percentiles"] = "inverted distribution function";
}

std::optional<RequestLine> ReadRequest(const JsonObject& request) {
  const auto info = ObjectAt(request, "info");
  const auto timings = info ? ObjectAt(*info, "timings") : std::nullopt;
  const auto output = NumberAt(request, "output_tokens");
  if (!timings || !output || *output < 1) return std::nullopt;
  const auto start = NumberAt(*timings, "request_start");
  const auto first = NumberAt(*timings, "first_token_iteration");
  const auto last = NumberAt(*timings, "last_token_iteration");
  const auto end = NumberAt(*timings, "request_end");
  // Seconds since the epoch: more than 200 years of them no longer fit into nanoseconds.
  if (!start || !first || !last || !end || *start < 0 || *end > 6e9) return std::nullopt;
  RequestLine line;
  line.start_ns = std::llround(*start * 1e9);
  line.end_ns = std::llround(std::max(*end, *start) * 1e9);
  auto& values = line.metrics.values;
  if (const auto input = NumberAt(request, "prompt_tokens"))
    values["input_sequence_length"] = *input;
  values["output_sequence_length"] = *output;
  values["time_to_first_token"] = (*first - *start) * kMsPerSecond;
  values["request_latency"] = (*last - *start) * kMsPerSecond;
  values["decode_duration"] = (*last - *first) * kMsPerSecond;
  if (const auto visible = NumberAt(*timings, "first_output_token_iteration")) {
    values["time_to_first_output_token"] = (*visible - *start) * kMsPerSecond;
  }
  if (*output < 2) return line;
  const double per_token = (*last - *first) * kMsPerSecond / (*output - 1);
  values["inter_token_latency"] = per_token;
  if (per_token > 0) values["output_token_throughput_per_user"] = kMsPerSecond / per_token;
  return line;
}

// Reports may keep a sample of the requests only; statistics over a sample would be others.
void UseRequests(const JsonObject& benchmark, Result& result) {
  const auto requests = ObjectAt(benchmark, "requests");
  const auto list = requests ? ArrayAt(*requests, "successful") : std::nullopt;
  if (!list) return;
  std::vector<RequestLine> lines;
  for (const JsonElement element : *list) {
    JsonObject request;
    if (element.get(request) != simdjson::SUCCESS) return;
    auto line = ReadRequest(request);
    if (!line) return;
    lines.push_back(*std::move(line));
  }
  const auto counted = result.cell.metrics.find("request_count");
  if (lines.empty() || (counted != result.cell.metrics.end() &&
                        counted->second.avg != static_cast<double>(lines.size()))) {
    return;
  }
  result.requests = std::move(lines);
  SummarizeRequests(result);
  result.cell.environment.erase("inter_token_latency");
  result.cell.environment.erase("percentiles");
}

void ReadStrategy(const JsonObject& benchmark, Result& result) {
  const auto config = ObjectAt(benchmark, "config");
  const auto strategy = config ? ObjectAt(*config, "strategy") : std::nullopt;
  if (!strategy) return;
  PlannedPhase phase;
  phase.name = "profiling";
  phase.type =
      TextAt(*strategy, "type_") == "concurrent" ? "concurrency" : TextAt(*strategy, "type_");
  phase.concurrency = IntegerAt(*strategy, "streams");
  phase.rate = NumberAt(*strategy, "rate");
  result.cell.concurrency = phase.concurrency;
  result.cell.environment["load"] = phase.type;
  if (phase.rate) result.cell.environment["request_rate"] = fmt::format("{}", *phase.rate);
  result.plan.phases.push_back(phase);
}

void ReadErrored(const JsonObject& benchmark, Cell& cell) {
  const auto requests = ObjectAt(benchmark, "requests");
  if (!requests) return;
  for (const JsonObject& request : ObjectsAt(*requests, "errored")) {
    const auto info = ObjectAt(request, "info");
    const std::string message = info ? TextAt(*info, "error") : "";
    cell.errors.push_back({std::nullopt, message.substr(0, message.find('(')), message, 1});
  }
}

Result ReadBenchmark(const JsonObject& benchmark, const std::string& version,
                     const std::filesystem::path& file) {
  Result result;
  Cell& cell = result.cell;
  cell.kind = ResultKind::kGuidellm;
  cell.source = file.string();
  cell.tool_version = version;
  cell.environment["load_tool"] = "guidellm " + version;
  ReadStrategy(benchmark, result);
  if (const auto metrics = ObjectAt(benchmark, "metrics")) ReadMetrics(*metrics, cell.metrics);
  if (const auto duration = NumberAt(benchmark, "duration")) {
    cell.metrics["benchmark_duration"] = Scalar(*duration, "sec");
    result.window_s = duration;
  }
  KeepTokenWeighted(result);
  ReadErrored(benchmark, cell);
  UseRequests(benchmark, result);
  MarkHarmonicRate(result);
  DeriveMetrics(result);
  return result;
}

}  // namespace

bool IsGuidellm(const JsonObject& root) {
  const auto metadata = ObjectAt(root, "metadata");
  return ArrayAt(root, "benchmarks") && metadata && FieldAt(*metadata, "guidellm_version");
}

absl::StatusOr<std::vector<Result>> ReadGuidellm(const JsonObject& root,
                                                 const std::filesystem::path& file) {
  const auto metadata = ObjectAt(root, "metadata");
  const std::string version = metadata ? TextAt(*metadata, "guidellm_version") : "";
  std::vector<Result> results;
  for (const JsonObject& benchmark : ObjectsAt(root, "benchmarks")) {
    results.push_back(ReadBenchmark(benchmark, version, file));
  }
  if (results.empty()) {
    return absl::NotFoundError(
        fmt::format("{} is a guidellm report without a benchmark", file.string()));
  }
  return results;
}

}  // namespace fulgur::bench

#include "bench/results/telemetry_reader.h"

#include <algorithm>
#include <string>
#include <utility>

#include "base/status_macros.h"
#include "bench/results/strings.h"
#include "fmt/format.h"
#include "io/json.h"

namespace fulgur::bench {
namespace {

constexpr double kMbPerGb = 1e9 / (1024.0 * 1024.0);
constexpr double kJoulesPerMegajoule = 1e6;
constexpr std::string_view kVendors[] = {"nvidia_", "amd_", "ascend_"};

// A field under its name with any vendor or none.
template <typename Get>
auto WithVendor(const std::string& name, Get get) -> decltype(get(name)) {
  if (auto value = get(name)) return value;
  for (const std::string_view vendor : kVendors) {
    if (auto value = get(std::string(vendor) + name)) return value;
  }
  return std::nullopt;
}

std::optional<double> Reading(const JsonObject& data, std::initializer_list<const char*> names) {
  for (const char* name : names) {
    const auto value =
        WithVendor(name, [&](const std::string& key) { return NumberAt(data, key); });
    if (value) return value;
  }
  return std::nullopt;
}

std::optional<JsonObject> Block(const JsonObject& metrics,
                                std::initializer_list<const char*> names) {
  for (const char* name : names) {
    auto value = WithVendor(name, [&](const std::string& key) { return ObjectAt(metrics, key); });
    if (value) return value;
  }
  return std::nullopt;
}

void Add(const std::optional<double>& value, std::optional<double>& sum) {
  if (value) sum = sum.value_or(0.0) + *value;
}

void Highest(const std::optional<double>& value, std::optional<double>& most) {
  if (value) most = std::max(most.value_or(*value), *value);
}

// Sums over devices, from which the means follow.
struct DeviceSums {
  UtilisationSummary summary;
  double memory_mb = 0.0;
  int32_t with_memory = 0;

  void Add(const JsonObject& metrics) {
    ++summary.devices;
    if (const auto busy = Block(metrics, {"gpu_utilization", "aicore_utilization"})) {
      if (const auto mean = NumberAt(*busy, "avg")) summary.device_busy_avg.push_back(*mean);
      Highest(NumberAt(*busy, "max"), summary.busy_max);
      summary.samples = std::max(summary.samples, IntegerAt(*busy, "count").value_or(0));
    }
    if (const auto memory = Block(metrics, {"memory_used", "gpu_memory_used", "hbm_used"})) {
      const double scale = TextAt(*memory, "unit") == "GB" ? kMbPerGb : 1.0;
      const auto most = NumberAt(*memory, "max");
      if (most) Highest(*most * scale, summary.device_memory_max_mb);
      if (const auto mean = NumberAt(*memory, "avg")) {
        memory_mb += *mean * scale;
        ++with_memory;
      }
    }
    if (const auto power = Block(metrics, {"power_usage", "gpu_power_usage"})) {
      bench::Add(NumberAt(*power, "avg"), summary.power_avg_w);
    }
    if (const auto energy = Block(metrics, {"energy_consumption"})) {
      const auto megajoules = NumberAt(*energy, "avg");
      if (megajoules) bench::Add(*megajoules * kJoulesPerMegajoule, summary.energy_j);
    }
  }
};

// The sum over all endpoints and engines; a series may be kept to one label's value.
std::optional<double> Statistic(const JsonObject& metrics, const char* name, const char* statistic,
                                const std::string& position = "") {
  const auto metric = ObjectAt(metrics, name);
  if (!metric) return std::nullopt;
  std::optional<double> sum;
  for (const JsonObject& series : ObjectsAt(*metric, "series")) {
    const auto labels = ObjectAt(series, "labels");
    if (!position.empty() && (!labels || TextAt(*labels, "position") != position)) continue;
    if (const auto stats = ObjectAt(series, "stats")) Add(NumberAt(*stats, statistic), sum);
  }
  return sum;
}

void SetIfAbsent(MetricMap& metrics, const std::string& tag, double value, const char* unit) {
  metrics.emplace(tag, Scalar(value, unit));
}

void SetAcceptance(const JsonObject& server, MetricMap& metrics) {
  const auto rounds = Statistic(server, "vllm:spec_decode_num_drafts", "total");
  const auto drafted = Statistic(server, "vllm:spec_decode_num_draft_tokens", "total");
  const auto accepted = Statistic(server, "vllm:spec_decode_num_accepted_tokens", "total");
  if (!accepted) return;
  if (drafted && *drafted > 0) {
    SetIfAbsent(metrics, "spec_decode_draft_acceptance_rate", *accepted / *drafted, "ratio");
    SetIfAbsent(metrics, "total_draft_tokens", *drafted, "tokens");
    SetIfAbsent(metrics, "total_accepted_draft_tokens", *accepted, "tokens");
  }
  if (!rounds || *rounds <= 0) return;
  SetIfAbsent(metrics, "spec_decode_acceptance_length", 1.0 + *accepted / *rounds, "tokens");
  for (int position = 0;; ++position) {
    const auto count = Statistic(server, "vllm:spec_decode_num_accepted_tokens_per_pos", "total",
                                 std::to_string(position));
    if (!count) return;
    SetIfAbsent(metrics, fmt::format("fulgur_acceptance_rate_position_{}", position + 1),
                *count / *rounds, "ratio");
  }
}

void SetServerMetrics(const JsonObject& server, MetricMap& metrics) {
  SetAcceptance(server, metrics);
  const auto queries = Statistic(server, "vllm:prefix_cache_queries", "total");
  const auto hits = Statistic(server, "vllm:prefix_cache_hits", "total");
  if (queries && hits && *queries > 0) {
    SetIfAbsent(metrics, "fulgur_prefix_cache_hit_rate", *hits / *queries, "ratio");
  }
  const auto waiting = Statistic(server, "vllm:num_requests_waiting", "avg");
  if (waiting) SetIfAbsent(metrics, "fulgur_server_requests_waiting", *waiting, "requests");
}

// Exact, while those of the summary have no time zone.
void SetPhase(const JsonObject& root, Cell& cell) {
  const auto summary = ObjectAt(root, "summary");
  const auto ranges = summary ? ObjectAt(*summary, "phase_time_ranges") : std::nullopt;
  const auto profiling = ranges ? ObjectAt(*ranges, "profiling") : std::nullopt;
  if (!profiling) return;
  const auto start = IntegerAt(*profiling, "start_ns");
  const auto end = IntegerAt(*profiling, "end_ns");
  if (!start || !end || *start <= 0 || *end <= *start) return;
  std::erase_if(cell.phases, [](const PhaseWindow& phase) { return phase.name == "profiling"; });
  cell.phases.push_back({"profiling", *start, *end});
}

absl::Status Read(const std::filesystem::path& file, Result& result) {
  ASSIGN_OR_RETURN(const io::JsonDocument document, io::JsonDocument::ReadFile(file.string()));
  ASSIGN_OR_RETURN(const JsonObject root, io::RootObject(document, file.string()));
  SetPhase(root, result.cell);
  // The file of a warm-up alone says nothing of the measured phase.
  const std::string phase = TextAt(root, "metrics_phase");
  const auto metrics = ObjectAt(root, "metrics");
  if (metrics && (phase.empty() || phase == "profiling")) {
    SetServerMetrics(*metrics, result.cell.metrics);
  }
  return absl::OkStatus();
}

}  // namespace

std::optional<DeviceReading> ReadDeviceLine(const JsonObject& line) {
  const auto time = IntegerAt(line, "timestamp_ns");
  const auto data = ObjectAt(line, "telemetry_data");
  const auto index = IntegerAt(line, "gpu_index");
  if (!time || *time <= 0 || !data || !index) return std::nullopt;
  DeviceReading reading;
  reading.wall_ns = *time;
  reading.device = fmt::format("{} {:06}", TextAt(line, "telemetry_source_url"), *index);
  reading.platform = TextAt(line, "platform");
  reading.sample.busy_percent = Reading(*data, {"gpu_utilization", "aicore_utilization"});
  reading.sample.memory_mb = Reading(*data, {"memory_used", "gpu_memory_used"});
  if (reading.sample.memory_mb) *reading.sample.memory_mb *= kMbPerGb;
  reading.sample.power_w = Reading(*data, {"power_usage", "gpu_power_usage"});
  reading.sample.temperature_c = Reading(*data, {"temperature", "gpu_temperature"});
  return reading;
}

std::optional<UtilisationSummary> ReadTelemetrySummary(const JsonObject& root) {
  const auto telemetry = ObjectAt(root, "telemetry_data");
  const auto endpoints = telemetry ? ObjectAt(*telemetry, "endpoints") : std::nullopt;
  if (!endpoints) return std::nullopt;
  DeviceSums sums;
  for (const auto endpoint : *endpoints) {
    JsonObject object;
    if (endpoint.value.get(object) != simdjson::SUCCESS) continue;
    const auto devices = ObjectAt(object, "gpus");
    if (!devices) continue;
    for (const auto device : *devices) {
      JsonObject entry;
      if (device.value.get(entry) != simdjson::SUCCESS) continue;
      if (const auto metrics = ObjectAt(entry, "metrics")) sums.Add(*metrics);
    }
  }
  UtilisationSummary& summary = sums.summary;
  if (summary.device_busy_avg.empty()) return std::nullopt;
  double busy = 0.0;
  for (const double mean : summary.device_busy_avg) busy += mean;
  const auto [low, high] =
      std::minmax_element(summary.device_busy_avg.begin(), summary.device_busy_avg.end());
  summary.busy_avg = busy / static_cast<double>(summary.device_busy_avg.size());
  if (summary.device_busy_avg.size() > 1 && *summary.busy_avg > 0) {
    summary.imbalance = (*high - *low) / *summary.busy_avg;
  }
  if (sums.with_memory > 0) summary.device_memory_avg_mb = sums.memory_mb / sums.with_memory;
  return std::move(summary);
}

void ReadServerMetrics(const std::filesystem::path& file, Result& result) {
  const absl::Status status = Read(file, result);
  if (!status.ok()) result.problems.push_back(Sentence(status));
}

}  // namespace fulgur::bench

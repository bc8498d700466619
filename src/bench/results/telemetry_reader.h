// What aiperf samples beside the load: devices (its DCGM collector) and the server's own metrics.
#pragma once

#include <filesystem>
#include <optional>

#include "bench/results/json_fields.h"
#include "bench/results/result.h"
#include "bench/results/utilisation.h"

namespace fulgur::bench {

// The file that aiperf writes next to a summary; it is also a utilisation log (utilisation_log.h).
inline constexpr std::string_view kDeviceTelemetryFile = "gpu_telemetry_export.jsonl";

// A line of that file: one device at one moment. Names with a vendor in front ("nvidia_", "amd_")
// and without one mean the same; memory is told in 10^9 bytes.
struct DeviceReading {
  int64_t wall_ns = 0;
  std::string device;  // source and index, to tell devices apart
  std::string platform;
  DeviceSample sample;
};
std::optional<DeviceReading> ReadDeviceLine(const JsonObject& line);

// "telemetry_data" of a summary: statistics by device over the measured phase.
std::optional<UtilisationSummary> ReadTelemetrySummary(const JsonObject& root);

// server_metrics_export.json: acceptance of drafts, hits of the prefix cache, requests that waited
// in the server, and the measured phase on the wall clock. Never replaces a metric that the result
// has; what cannot be read becomes one of its problems.
void ReadServerMetrics(const std::filesystem::path& file, Result& result);

}  // namespace fulgur::bench

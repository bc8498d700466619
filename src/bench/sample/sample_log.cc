#include "bench/sample/sample_log.h"

#include <cmath>

#include "fmt/format.h"
#include "nlohmann/json.hpp"

namespace fulgur::bench {
namespace {

using Json = nlohmann::ordered_json;

Json OrNull(const std::optional<int>& value) { return value ? Json(*value) : Json(nullptr); }

// One digit after the point, none where there is nothing to say: 12 rather than 12.0.
Json Rounded(const std::optional<double>& value) {
  if (!value || !std::isfinite(*value)) return nullptr;
  const double tenths = std::round(*value * 10) / 10;
  if (tenths == std::trunc(tenths) && std::abs(tenths) < 1e15) return static_cast<int64_t>(tenths);
  return tenths;
}

std::string Line(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

Json DeviceHeader(const SampledDevice& device) {
  return {{"id", device.id},
          {"kind", device.kind},
          {"card", OrNull(device.card)},
          {"chip", OrNull(device.chip)},
          {"phy", OrNull(device.physical)},
          {"bus", device.bus},
          {"name", device.name},
          {"mem_total_mb", Rounded(device.memory_total_mb)}};
}

void AddIfKnown(Json& json, const char* name, const std::optional<double>& value) {
  if (value) json[name] = Rounded(value);
}

std::string Whole(const std::optional<double>& value) {
  return value ? fmt::format("{:.0f}", *value) : "-";
}

}  // namespace

std::string NativeHeader(const LogHeader& header) {
  Json devices = Json::array();
  for (const SampledDevice& device : header.devices) devices.push_back(DeviceHeader(device));
  return Line({{"format", kNativeLogFormat},
               {"host", header.host},
               {"tag", header.tag},
               {"interval_ms", absl::ToInt64Milliseconds(header.interval)},
               {"clock", "realtime+monotonic"},
               {"start_ns", absl::ToUnixNanos(header.start)},
               {"device_source", header.device_source},
               {"devices", std::move(devices)},
               {"cpu_count", header.num_cpus}});
}

std::string NativeLine(const SampleTick& tick) {
  Json devices = Json::array();
  for (const DeviceReading& d : tick.devices) {
    devices.push_back({Rounded(d.utilisation_percent), Rounded(d.memory_used_mb),
                       Rounded(d.power_w), Rounded(d.temperature_c)});
  }
  const HostReading& host = tick.host;
  Json json = {{"t_ns", tick.wall_ns},
               {"m_ns", tick.monotonic_ns},
               {"late_us", tick.device_age_us ? Json(*tick.device_age_us) : Json(nullptr)},
               {"delay_us", tick.delay_us},
               {"dev", std::move(devices)},
               {"cpu", Rounded(host.cpu_percent)},
               {"cpu_max_core", Rounded(host.cpu_max_core_percent)},
               {"mem_used_mb", Rounded(host.memory_used_mb)},
               {"mem_avail_mb", Rounded(host.memory_available_mb)},
               {"mem_free_mb", Rounded(host.memory_free_mb)},
               {"mem_total_mb", Rounded(host.memory_total_mb)},
               {"mem_cache_mb", Rounded(host.buffers_and_cache_mb)},
               {"swap_mb", Rounded(host.swap_used_mb)},
               {"net_rx", Rounded(host.net_rx_bytes_per_s)},
               {"net_tx", Rounded(host.net_tx_bytes_per_s)},
               {"load1", host.load1 ? Json(*host.load1) : Json(nullptr)}};
  AddIfKnown(json, "rdma_rx", host.rdma_rx_bytes_per_s);
  AddIfKnown(json, "rdma_tx", host.rdma_tx_bytes_per_s);
  AddIfKnown(json, "host_power_w", host.power_w);
  AddIfKnown(json, "cgroup_cpu", host.cgroup_cpu_percent);
  AddIfKnown(json, "cgroup_mem_mb", host.cgroup_memory_mb);
  AddIfKnown(json, "process_cpu", host.process_cpu_percent);
  AddIfKnown(json, "process_pss_mb", host.process_pss_mb);
  if (tick.missed > 0) json["missed"] = tick.missed;
  return Line(json);
}

std::string NativeFooter(const SamplerSummary& summary, const std::string& device_error) {
  Json end = {{"ticks", summary.num_ticks},
              {"missed", summary.num_missed},
              {"period_mean_ms", std::round(summary.mean_period_ms * 1000) / 1000},
              {"period_p99_ms", std::round(summary.p99_period_ms * 1000) / 1000},
              {"device_energy_j", Rounded(summary.device_energy_j)},
              {"host_energy_j", Rounded(summary.host_energy_j)}};
  if (!device_error.empty()) end["device_error"] = device_error;
  return Line({{"end", std::move(end)}});
}

std::string SeedHeader(const LogHeader& header) {
  std::string text =
      fmt::format("# sample-util start tag={} interval={:g}s host={} date={}\n# cols: epoch ts",
                  header.tag, absl::ToDoubleSeconds(header.interval), header.host,
                  absl::FormatTime("%Y-%m-%dT%H:%M:%S%Ez", header.start, absl::LocalTimeZone()));
  for (size_t i = 0; i < header.devices.size(); ++i) text += fmt::format(" ai{0} hbm{0}", i);
  return text + " cpu_busy% mem_used_mb mem_total_mb\n";
}

std::string SeedLine(const SampleTick& tick) {
  const absl::Time time = absl::FromUnixNanos(tick.wall_ns);
  std::string text =
      fmt::format("{} {}", absl::ToUnixSeconds(time),
                  absl::FormatTime("%Y-%m-%dT%H:%M:%S", time, absl::LocalTimeZone()));
  for (const DeviceReading& device : tick.devices) {
    text += fmt::format(" {} {}", Whole(device.utilisation_percent), Whole(device.memory_used_mb));
  }
  const HostReading& host = tick.host;
  std::optional<double> used;
  if (host.memory_total_mb && host.memory_free_mb) {
    used = *host.memory_total_mb - *host.memory_free_mb;
  }
  return text + fmt::format(" {} {} {}\n",
                            host.cpu_percent ? fmt::format("{:.1f}", *host.cpu_percent) : "-",
                            Whole(used), Whole(host.memory_total_mb));
}

std::string SeedFooter(const SamplerSummary& summary) {
  return fmt::format("# end ticks={} missed={} period_mean_ms={:.3f} period_p99_ms={:.3f}\n",
                     summary.num_ticks, summary.num_missed, summary.mean_period_ms,
                     summary.p99_period_ms);
}

}  // namespace fulgur::bench

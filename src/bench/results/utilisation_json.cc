#include "bench/results/utilisation_json.h"

#include <cmath>
#include <utility>

#include "nlohmann/json.hpp"

namespace fulgur::bench {
namespace {

using OrderedJson = nlohmann::ordered_json;

struct NumberField {
  const char* key;
  std::optional<double> UtilisationSummary::*member;
};

constexpr NumberField kNumbers[] = {
    {"busy_avg", &UtilisationSummary::busy_avg},
    {"busy_p50", &UtilisationSummary::busy_p50},
    {"busy_p95", &UtilisationSummary::busy_p95},
    {"busy_max", &UtilisationSummary::busy_max},
    {"idle_share", &UtilisationSummary::idle_share},
    {"imbalance", &UtilisationSummary::imbalance},
    {"device_memory_avg_mb", &UtilisationSummary::device_memory_avg_mb},
    {"device_memory_max_mb", &UtilisationSummary::device_memory_max_mb},
    {"cpu_avg_percent", &UtilisationSummary::cpu_avg_percent},
    {"cpu_max_core_percent", &UtilisationSummary::cpu_max_core_percent},
    {"host_memory_used_mb", &UtilisationSummary::host_memory_used_mb},
    {"host_memory_unavailable_mb", &UtilisationSummary::host_memory_unavailable_mb},
    {"power_avg_w", &UtilisationSummary::power_avg_w},
    {"energy_j", &UtilisationSummary::energy_j},
    {"joules_per_output_token", &UtilisationSummary::joules_per_output_token},
    {"tokens_per_busy_device_second", &UtilisationSummary::tokens_per_busy_device_second}};

struct PointField {
  const char* key;
  std::optional<double> UtilisationPoint::*member;
};

constexpr PointField kPointNumbers[] = {{"busy_mean", &UtilisationPoint::busy_mean},
                                        {"busy_min_device", &UtilisationPoint::busy_min_device},
                                        {"busy_max_device", &UtilisationPoint::busy_max_device},
                                        {"cpu_percent", &UtilisationPoint::cpu_percent},
                                        {"memory_mb", &UtilisationPoint::memory_mb}};

OrderedJson PointToJson(const UtilisationPoint& point) {
  OrderedJson json = {{"seconds", point.seconds}};
  for (const PointField& field : kPointNumbers) {
    if (const auto& value = point.*field.member) json[field.key] = *value;
  }
  return json;
}

UtilisationPoint PointFromJson(const JsonObject& object) {
  UtilisationPoint point;
  point.seconds = NumberAt(object, "seconds").value_or(0.0);
  for (const PointField& field : kPointNumbers) point.*field.member = NumberAt(object, field.key);
  return point;
}

}  // namespace

OrderedJson UtilisationToJson(const UtilisationSummary& summary) {
  OrderedJson json = {{"samples", summary.samples}, {"devices", summary.devices}};
  if (summary.wall_end_ns > 0) {
    json["wall_start_ns"] = summary.wall_start_ns;
    json["wall_end_ns"] = summary.wall_end_ns;
  }
  for (const NumberField& field : kNumbers) {
    if (const auto& value = summary.*field.member; value && std::isfinite(*value)) {
      json[field.key] = *value;
    }
  }
  if (!summary.device_busy_avg.empty()) json["device_busy_avg"] = summary.device_busy_avg;
  for (const UtilisationPoint& point : summary.series) {
    json["series"].push_back(PointToJson(point));
  }
  return json;
}

UtilisationSummary UtilisationFromJson(const JsonObject& object) {
  UtilisationSummary summary;
  summary.samples = IntegerAt(object, "samples").value_or(0);
  const auto devices = IntegerAt(object, "devices").value_or(0);
  summary.devices = devices > 0 && devices < 1'000'000 ? static_cast<int32_t>(devices) : 0;
  summary.wall_start_ns = IntegerAt(object, "wall_start_ns").value_or(0);
  summary.wall_end_ns = IntegerAt(object, "wall_end_ns").value_or(0);
  for (const NumberField& field : kNumbers) summary.*field.member = NumberAt(object, field.key);
  summary.device_busy_avg = NumbersAt(object, "device_busy_avg").value_or(std::vector<double>());
  for (const JsonObject& point : ObjectsAt(object, "series")) {
    summary.series.push_back(PointFromJson(point));
  }
  return summary;
}

}  // namespace fulgur::bench

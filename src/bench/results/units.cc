#include "bench/results/units.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "base/status_macros.h"
#include "bench/stats/request_metrics.h"
#include "fmt/format.h"
#include "io/json.h"

namespace fulgur::bench {
namespace {

constexpr std::array<std::pair<std::string_view, double>, 10> kTimes = {{
    {"ns", 1e-6},
    {"us", 1e-3},
    {"µs", 1e-3},
    {"ms", 1.0},
    {"milliseconds", 1.0},
    {"s", 1e3},
    {"sec", 1e3},
    {"seconds", 1e3},
    {"nanoseconds", 1e-6},
    {"microseconds", 1e-3},
}};

// What the statistics of a tag are counted in; empty: the tag's meaning is not known here.
std::string_view DimensionOf(std::string_view tag) {
  if (tag.starts_with("fulgur_")) return "";
  if (tag.ends_with("throughput") || tag == "goodput") return "rate";
  if (tag.ends_with("throughput_per_user")) return "rate";
  if (tag.ends_with("_latency") || tag.starts_with("time_to_") || tag.ends_with("_duration")) {
    return "time";
  }
  if (tag == "adj_time_to_first_token") return "time";
  if (tag.ends_with("_sequence_length") || tag.ends_with("_osl") || tag.ends_with("_isl") ||
      tag.ends_with("_tokens") || tag.ends_with("token_count")) {
    return "count";
  }
  if (tag.ends_with("request_count")) return "count";
  return "";
}

std::string_view DimensionOfUnit(std::string_view unit) {
  for (const auto& [name, scale] : kTimes) {
    if (unit == name) return "time";
  }
  if (unit.find("/sec") != std::string_view::npos || unit.ends_with("/s")) return "rate";
  if (unit == "tokens" || unit == "requests" || unit == "count") return "count";
  return "";
}

void Scale(double factor, MetricBlock& block) {
  for (auto* value : {&block.avg, &block.min, &block.max, &block.std, &block.sum}) {
    if (value->has_value()) **value *= factor;
  }
  for (auto& [q, value] : block.percentiles) value *= factor;
}

}  // namespace

absl::StatusOr<double> MillisecondsIn(std::string_view unit) {
  for (const auto& [name, scale] : kTimes) {
    if (unit == name) return scale;
  }
  return absl::InvalidArgumentError(
      fmt::format("{} is not a unit of time (ns, us, ms, s or sec)", io::Quoted(unit)));
}

absl::Status ConvertUnit(std::string_view tag, MetricBlock& block) {
  const std::string_view wanted = DimensionOf(tag);
  const std::string_view found = DimensionOfUnit(block.unit);
  if (!wanted.empty() && wanted != found) {
    return absl::InvalidArgumentError(fmt::format("{} has the unit {}, which is no unit of a {}",
                                                  io::Shortened(tag), io::Quoted(block.unit),
                                                  wanted));
  }
  if (found != "time") return absl::OkStatus();
  ASSIGN_OR_RETURN(const double in_ms, MillisecondsIn(block.unit));
  const bool in_seconds = tag == "benchmark_duration";
  const double factor = in_seconds ? in_ms / 1e3 : in_ms;
  if (factor != 1.0) Scale(factor, block);
  block.unit = in_seconds ? "sec" : "ms";
  return absl::OkStatus();
}

std::string_view UsualUnit(std::string_view tag) {
  if (tag == "benchmark_duration") return "sec";
  if (tag == "request_throughput" || tag == "goodput") return "requests/sec";
  if (tag.ends_with("throughput") && tag != "e2e_output_token_throughput") return "tokens/sec";
  if (tag.ends_with("request_count")) return "requests";
  if (tag == "total_osl" || tag.starts_with("spec_decode_acceptance")) return "tokens";
  return UnitOf(tag);
}

}  // namespace fulgur::bench

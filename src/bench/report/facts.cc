#include "bench/report/facts.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "fmt/format.h"

namespace fulgur::bench {
namespace {

constexpr std::string_view kOverDuration = "fulgur_output_token_throughput_over_duration";

}  // namespace

Facts::Facts(const Comparison& comparison) : comparison_(comparison) {
  baseline_ = comparison.FindSystem(comparison.baseline);
  treatment_ = comparison.FindSystem(comparison.treatment);
  for (const SystemFacts& system : comparison.systems) {
    if (&system != baseline_ && &system != treatment_) references_.push_back(&system);
  }
  for (const ScenarioFacts& scenario : comparison.scenarios) {
    bool first = true;
    for (int64_t concurrency : comparison.concurrencies) {
      places_.push_back({&scenario, concurrency, first});
      first = false;
    }
  }
}

std::vector<const SystemFacts*> Facts::systems() const {
  std::vector<const SystemFacts*> all;
  if (baseline_ != nullptr) all.push_back(baseline_);
  if (treatment_ != nullptr && treatment_ != baseline_) all.push_back(treatment_);
  all.insert(all.end(), references_.begin(), references_.end());
  return all;
}

const CellFacts* Facts::Cell(const SystemFacts* system, const Place& place) const {
  if (system == nullptr) return nullptr;
  return comparison_.FindCell(system->id, place.scenario->id, place.concurrency);
}

std::optional<double> Facts::Value(const SystemFacts* system, const Place& place,
                                   std::string_view tag, std::string_view statistic) const {
  return Statistic(Cell(system, place), tag, statistic);
}

const Contrast* Facts::Find(const Place& place, std::string_view tag,
                            std::string_view statistic) const {
  return comparison_.FindContrast(place.scenario->id, place.concurrency, tag, statistic);
}

std::optional<double> Facts::SystemRate(const SystemFacts* system, const Place& place) const {
  for (const SystemFacts* other : {baseline_, treatment_}) {
    const CellFacts* cell = Cell(other, place);
    if (cell != nullptr && !Statistic(cell, kOverDuration, "avg")) {
      return Value(system, place, "output_token_throughput");
    }
  }
  return Value(system, place, kOverDuration);
}

std::optional<double> Facts::RatePerDevice(const SystemFacts* system, const Place& place) const {
  const auto rate = SystemRate(system, place);
  if (!rate || !system->devices || *system->devices <= 0) return std::nullopt;
  return *rate / static_cast<double>(*system->devices);
}

std::optional<double> Facts::AcceptanceLength(const SystemFacts* system, const Place& place) const {
  for (const char* tag :
       {"spec_decode_acceptance_length", "spec_decode_token_weighted_acceptance_length"}) {
    if (const auto value = Value(system, place, tag)) return value;
  }
  return std::nullopt;
}

std::optional<double> Facts::AcceptancePercent(const SystemFacts* system,
                                               const Place& place) const {
  const CellFacts* cell = Cell(system, place);
  if (cell == nullptr) return std::nullopt;
  const auto block = cell->metrics.find("spec_decode_draft_acceptance_rate");
  if (block == cell->metrics.end() || !block->second.avg) return std::nullopt;
  return block->second.unit == "ratio" ? *block->second.avg * 100 : *block->second.avg;
}

std::optional<double> Facts::Requests(const SystemFacts* system, const Place& place) const {
  if (const auto count = Value(system, place, "time_to_first_token", "count")) return count;
  const CellFacts* cell = Cell(system, place);
  if (cell == nullptr || !cell->requests) return std::nullopt;
  return static_cast<double>(*cell->requests);
}

std::string Facts::ScenarioLabel(const ScenarioFacts& scenario, Language language) const {
  const auto label = scenario.label.find(language == Language::kEnglish ? "en" : "zh");
  if (label != scenario.label.end() && !label->second.empty()) return label->second;
  const auto english = scenario.label.find("en");
  return english != scenario.label.end() && !english->second.empty() ? english->second
                                                                     : scenario.id;
}

std::string Facts::PlaceLabel(const Place& place, Language language) const {
  return absl::StrCat(ScenarioLabel(*place.scenario, language), " ",
                      ConcurrencyName(place.concurrency));
}

std::string Facts::Environment(const SystemFacts* system,
                               std::initializer_list<std::string_view> keys) const {
  if (system == nullptr) return "";
  for (std::string_view key : keys) {
    const auto found = system->environment.find(std::string(key));
    if (found != system->environment.end() && !found->second.empty()) return found->second;
  }
  return "";
}

std::optional<std::pair<int64_t, int64_t>> Facts::Span() const {
  std::optional<std::pair<int64_t, int64_t>> span;
  for (const CellFacts& cell : comparison_.cells) {
    for (const PhaseWindow& phase : cell.phases) {
      if (phase.wall_start_ns <= 0) continue;
      if (!span) span = {phase.wall_start_ns, phase.wall_end_ns};
      span->first = std::min(span->first, phase.wall_start_ns);
      span->second = std::max(span->second, phase.wall_end_ns);
    }
  }
  return span;
}

std::string Fixed(std::optional<double> value, int digits) {
  if (!value || !std::isfinite(*value)) return std::string(kAbsent);
  return fmt::format("{:.{}f}", *value, digits);
}

std::string Times(std::optional<double> ratio) {
  if (!ratio || !std::isfinite(*ratio)) return std::string(kAbsent);
  return fmt::format("{:.2f}x", *ratio);
}

std::string SignedPercent(std::optional<double> value, int digits) {
  if (!value || !std::isfinite(*value)) return std::string(kAbsent);
  const std::string number = fmt::format("{:+.{}f}", *value, digits);
  // "-0" says nothing.
  const bool zero = number.find_first_of("123456789") == std::string::npos;
  return absl::StrCat(zero ? number.substr(1) : number, " %");
}

std::string UtcTime(int64_t wall_ns) {
  return absl::FormatTime("%Y-%m-%d %H:%M:%S UTC", absl::FromUnixNanos(wall_ns),
                          absl::UTCTimeZone());
}

std::string UtcDate(int64_t wall_ns) {
  return absl::FormatTime("%Y-%m-%d", absl::FromUnixNanos(wall_ns), absl::UTCTimeZone());
}

}  // namespace fulgur::bench

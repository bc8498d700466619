// What workbook and report ask of a comparison most often, in short.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "bench/report/text.h"
#include "bench/results/comparison.h"

namespace fulgur::bench {

// A row of the tables: a scenario at a concurrency, measured or not.
struct Place {
  const ScenarioFacts* scenario = nullptr;
  int64_t concurrency = 0;
  bool first_of_scenario = false;
};

// Keeps a reference to the comparison, which must outlive it.
class Facts {
 public:
  explicit Facts(const Comparison& comparison);

  const Comparison& comparison() const { return comparison_; }
  const SystemFacts* baseline() const { return baseline_; }    // null: none
  const SystemFacts* treatment() const { return treatment_; }  // null: none
  const std::vector<const SystemFacts*>& references() const { return references_; }
  // Baseline, treatment and references, those that there are.
  std::vector<const SystemFacts*> systems() const;
  const std::vector<Place>& places() const { return places_; }

  const CellFacts* Cell(const SystemFacts* system, const Place& place) const;
  std::optional<double> Value(const SystemFacts* system, const Place& place, std::string_view tag,
                              std::string_view statistic = "avg") const;
  const Contrast* Find(const Place& place, std::string_view tag = kHeadlineTag,
                       std::string_view statistic = "avg") const;
  // Output tokens per second of the whole system: over the benchmark's duration where both systems
  // have that, else as the file says.
  std::optional<double> SystemRate(const SystemFacts* system, const Place& place) const;
  std::optional<double> RatePerDevice(const SystemFacts* system, const Place& place) const;
  // Tokens per verification step by the server's own count; absent if it does not say.
  std::optional<double> AcceptanceLength(const SystemFacts* system, const Place& place) const;
  // Accepted drafts in percent of all drafts, likewise.
  std::optional<double> AcceptancePercent(const SystemFacts* system, const Place& place) const;
  // Requests behind the latencies of a cell.
  std::optional<double> Requests(const SystemFacts* system, const Place& place) const;

  std::string ScenarioLabel(const ScenarioFacts& scenario, Language language) const;
  // "Chat (128,256) C16"
  std::string PlaceLabel(const Place& place, Language language) const;
  // The first of the keys that the system's environment has; empty if none.
  std::string Environment(const SystemFacts* system,
                          std::initializer_list<std::string_view> keys) const;
  // First and last instant of all measured phases (Unix time in ns); absent if no file says.
  std::optional<std::pair<int64_t, int64_t>> Span() const;

 private:
  const Comparison& comparison_;
  const SystemFacts* baseline_ = nullptr;
  const SystemFacts* treatment_ = nullptr;
  std::vector<const SystemFacts*> references_;
  std::vector<Place> places_;
};

// Numbers as texts. An absent number is a dash.
std::string Fixed(std::optional<double> value, int digits);
std::string Times(std::optional<double> ratio);                      // "1.96x"
std::string SignedPercent(std::optional<double> value, int digits);  // 95.6 -> "+95.6 %"
std::string UtcTime(int64_t wall_ns);                                // "2026-08-07 03:04:05 UTC"
std::string UtcDate(int64_t wall_ns);

inline constexpr std::string_view kAbsent = "–";

}  // namespace fulgur::bench

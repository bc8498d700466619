#include "bench/sample/clock_offset.h"

#include <optional>

#include "fmt/format.h"
#include "nlohmann/json.hpp"

namespace fulgur::bench {

absl::StatusOr<ClockOffset> MeasureClockOffset(const std::function<absl::StatusOr<int64_t>()>& ask,
                                               const std::function<int64_t()>& now,
                                               int num_questions) {
  std::optional<int64_t> best_round_trip;
  ClockOffset best;
  absl::Status error = absl::InvalidArgumentError("no question was asked");
  for (int i = 0; i < num_questions; ++i) {
    const int64_t before = now();
    const auto answer = ask();
    const int64_t after = now();
    if (!answer.ok()) {
      error = answer.status();
      continue;
    }
    ++best.num_answers;
    const int64_t round_trip = after - before;
    if (round_trip < 0 || (best_round_trip && round_trip >= *best_round_trip)) continue;
    best_round_trip = round_trip;
    best.offset_ns = *answer - (before + round_trip / 2);
    best.uncertainty_ns = (round_trip + 1) / 2;
  }
  if (!best_round_trip) return error;
  return best;
}

std::string WithClockOffset(const std::string& text, const ClockOffset& offset) {
  if (text.starts_with('#')) {
    return fmt::format("# clock offset_ns={} uncertainty_ns={}\n{}", offset.offset_ns,
                       offset.uncertainty_ns, text);
  }
  const size_t end = text.find('\n');
  auto header = nlohmann::ordered_json::parse(text.substr(0, end), nullptr, false);
  if (end == std::string::npos || !header.is_object()) return text;
  header["clock_offset_ns"] = offset.offset_ns;
  header["clock_uncertainty_ns"] = offset.uncertainty_ns;
  return header.dump() + text.substr(end);
}

}  // namespace fulgur::bench

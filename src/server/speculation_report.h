// What /metrics and the log say of speculative decoding: what it gained, and why it is on or off.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "absl/time/time.h"
#include "engine/engine.h"
#include "server/prometheus.h"

namespace fulgur::server {

// vLLM's series, then our own (fulgur:spec_...). Nothing if the engine does not speculate.
void WriteSpeculation(const engine::SpeculationStats& stats, std::string_view labels,
                      Exposition* out);

// One line on the time between two states of the counters.
std::string DescribeSpeculation(const engine::SpeculationStats& before,
                                const engine::SpeculationStats& now);

// Decides when that line is due: once a minute while answers are made, and soon after drafting was
// switched on or off.
class SpeculationLog {
 public:
  std::optional<std::string> LineDue(const engine::SpeculationStats& stats, absl::Time now);

 private:
  engine::SpeculationStats before_;
  absl::Time last_ = absl::InfinitePast();
  bool was_on_ = true;
};

}  // namespace fulgur::server

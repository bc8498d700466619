// What lies between the forward passes of the real engine: sampling, planning, its loop.
#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "bench_model.h"

namespace fulgur::bench_engine {

struct EngineTimes {
  int64_t steps = 0;               // that decoded all sequences
  double tokens_per_second = 0.0;  // decoded, from the first such step to the last
  // Shares of that time.
  double forward = 0.0;
  double sampling = 0.0;  // from the end of a forward pass to the step's last event
  double planning = 0.0;  // from there to the next forward pass: scheduler, batch, the loop
};

// Sends `sequences` prompts of `prompt` tokens for `output` tokens each through an engine of its
// own over `model`, greedily.
absl::StatusOr<EngineTimes> MeasureEngine(BenchModel& model, int64_t sequences, int64_t prompt,
                                          int64_t output);

}  // namespace fulgur::bench_engine

// The lines of utilisation logs: JSON lines of our own, and the older columns of numbers.
//
// Pure functions; every line ends with a line feed and is meant to be written by one call.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "bench/sample/sample_tick.h"
#include "bench/sample/sampler.h"

namespace fulgur::bench {

inline constexpr std::string_view kNativeLogFormat = "fulgur-util/1";

struct LogHeader {
  std::string host;
  std::string tag;
  absl::Duration interval;
  absl::Time start;
  std::string device_source;
  std::vector<SampledDevice> devices;
  int num_cpus = 0;
};

// {"format":"fulgur-util/1", ...}, then {"t_ns":..., "dev":[[busy %, MB, W, °C], ...], ...} a tick,
// then {"end":{...}}. Unknown values are null.
std::string NativeHeader(const LogHeader& header);
std::string NativeLine(const SampleTick& tick);
std::string NativeFooter(const SamplerSummary& summary, const std::string& device_error);

// "# sample-util start ..." and "# cols: ...", then
// "epoch time busy0 mb0 busy1 mb1 ... cpu% used_mb total_mb" a tick, used being total - free;
// then "# end ...". Unknown values are "-".
std::string SeedHeader(const LogHeader& header);
std::string SeedLine(const SampleTick& tick);
std::string SeedFooter(const SamplerSummary& summary);

}  // namespace fulgur::bench

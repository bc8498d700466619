// What Huawei's npu-smi prints, in all layouts seen since version 23, and nvidia-smi's CSV.
//
// Pure functions over text. Unknown lines are skipped, values such as "-" and "NA" are absent.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "bench/sample/sample_tick.h"

namespace fulgur::bench {

struct DeviceRow {
  SampledDevice device;
  DeviceReading reading;
};

// The device table of `npu-smi info`: two lines per chip, five columns on Ascend 950, three on
// others. Chips that a container lists twice appear once.
std::vector<DeviceRow> ParseNpuSmiTable(std::string_view text);

// Lines of `npu-smi info watch`: a header that names the columns, then one line per chip and round.
class NpuWatchParser {
 public:
  struct Row {
    int card = 0;
    int chip = 0;
    std::optional<double> memory_percent;
    DeviceReading reading;  // without memory: that is a percentage here
  };

  // The row in a line; none for headers and for lines that do not fit the last header.
  std::optional<Row> ParseLine(std::string_view line);

 private:
  std::vector<std::string> columns_;
};

// A line of `nvidia-smi --format=csv,noheader,nounits` with kNvidiaSmiFields.
inline constexpr std::string_view kNvidiaSmiFields =
    "index,uuid,utilization.gpu,memory.used,memory.total,power.draw,temperature.gpu,name";
std::optional<DeviceRow> ParseNvidiaSmiLine(std::string_view line);

}  // namespace fulgur::bench

// Feeds arbitrary text to the readers of npu-smi, nvidia-smi and /proc.
#include <cstddef>
#include <cstdint>

#include "base/check.h"
#include "bench/sample/host_text.h"
#include "bench/sample/npu_smi_text.h"
#include "bench/sample/text_scan.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace fulgur::bench;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  for (const DeviceRow& row : ParseNpuSmiTable(text)) CHECK(row.reading.memory_used_mb.has_value());
  NpuWatchParser watch;
  for (std::string_view line : LinesOf(text)) {
    watch.ParseLine(line);
    ParseNvidiaSmiLine(line);
  }
  if (const auto stat = ParseProcStat(text)) BusyPercent({}, stat->all);
  ParseMegabytes(text);
  ParseNetDev(text);
  ParseProcessStat(text);
  ParseOwnCgroup(text);
  return 0;
}

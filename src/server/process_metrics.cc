#include "server/process_metrics.h"

#include <sys/resource.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>

namespace fulgur::server {
namespace {

double CpuSeconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

// Field `number` (from 1, as in proc(5)) of /proc/self/stat. The second field, the program's name,
// may hold spaces, so counting begins behind its closing bracket.
double StatField(int number) {
  std::ifstream file("/proc/self/stat");
  std::string line((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  size_t bracket = line.rfind(')');
  if (bracket == std::string::npos) return 0;
  std::istringstream rest(line.substr(bracket + 1));
  std::string field;
  for (int i = 2; i < number; ++i) rest >> field;
  return std::strtod(field.c_str(), nullptr);
}

double OpenDescriptors() {
  std::error_code error;
  std::filesystem::directory_iterator entries("/proc/self/fd", error);
  return error ? 0 : static_cast<double>(std::distance(begin(entries), end(entries)));
}

double StartSeconds() {
  constexpr int kStartTimeField = 22;  // in clock ticks since boot
  std::ifstream file("/proc/stat");
  std::string line;
  while (std::getline(file, line)) {
    if (line.rfind("btime ", 0) != 0) continue;
    return std::strtod(line.c_str() + 6, nullptr) +
           StatField(kStartTimeField) / static_cast<double>(sysconf(_SC_CLK_TCK));
  }
  return 0;
}

}  // namespace

void WriteProcessMetrics(Exposition* out) {
  constexpr int kResidentField = 24;  // in pages
  double page_bytes = static_cast<double>(sysconf(_SC_PAGESIZE));
  out->Gauge("process_resident_memory_bytes", "Resident memory.", "",
             StatField(kResidentField) * page_bytes);
  out->Counter("process_cpu_seconds", "User and system time.", "", CpuSeconds());
  out->Gauge("process_open_fds", "Open file descriptors.", "", OpenDescriptors());
  out->Gauge("process_start_time_seconds", "Start of the process, Unix time.", "", StartSeconds());
}

}  // namespace fulgur::server

// The texts of /proc that the sampler reads, as numbers. Pure functions; what is not there is
// absent.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace fulgur::bench {

// Jiffies of one line of /proc/stat since boot.
struct CpuTimes {
  int64_t total = 0;  // guests are already inside user
  int64_t idle = 0;   // idle + iowait
};

struct CpuTable {
  CpuTimes all;
  std::map<int, CpuTimes> cores;  // cores may come and go
};

std::optional<CpuTable> ParseProcStat(std::string_view text);

// Busy share between two readings, 0 to 100; none if no time passed. iowait may run backwards.
std::optional<double> BusyPercent(const CpuTimes& before, const CpuTimes& after);

// /proc/meminfo and smaps_rollup: "Name:   123 kB" lines, in MB of 1024 kB.
std::map<std::string, double> ParseMegabytes(std::string_view text);

struct NetBytes {
  uint64_t rx = 0;
  uint64_t tx = 0;
};

// /proc/net/dev by interface.
std::map<std::string, NetBytes> ParseNetDev(std::string_view text);

// /proc/PID/stat.
struct ProcessStat {
  int parent = 0;
  int64_t cpu_jiffies = 0;    // user and system, without waited-for children
  int64_t start_jiffies = 0;  // since boot: with the pid it names a process for good
};
std::optional<ProcessStat> ParseProcessStat(std::string_view text);

// The value of a "name value" line, as in cgroup's cpu.stat.
std::optional<int64_t> FindCounter(std::string_view text, std::string_view name);

// The own group's path of /proc/self/cgroup (version 2), such as "/system.slice/x.service".
std::optional<std::string> ParseOwnCgroup(std::string_view text);

}  // namespace fulgur::bench

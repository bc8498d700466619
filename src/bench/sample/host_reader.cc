#include "bench/sample/host_reader.h"

#include <unistd.h>

#include <algorithm>
#include <set>
#include <utility>

#include "bench/sample/text_scan.h"

namespace fulgur::bench {
namespace {

namespace fs = std::filesystem;

constexpr absl::Duration kProcessPeriod = absl::Seconds(5);
constexpr double kRdmaBytesPerCount = 4;  // InfiniBand counts words of four lanes
constexpr double kBytesPerMb = 1 << 20;

std::vector<fs::path> Entries(const fs::path& folder) {
  std::vector<fs::path> entries;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    entries.push_back(it->path());
  }
  std::sort(entries.begin(), entries.end());
  return entries;
}

std::optional<uint64_t> FileNumber(const fs::path& path) {
  return WholeNumber<uint64_t>(Trimmed(FileText(path)));
}

}  // namespace

std::optional<double> HostReader::Rate::Next(std::optional<double> value, double seconds) {
  const auto last = std::exchange(last_, value);
  if (!last || !value || *value < *last || seconds <= 0) return std::nullopt;
  return (*value - *last) / seconds;
}

HostReader::HostReader(HostPaths paths, std::optional<pid_t> process, fs::path cgroup)
    : paths_(std::move(paths)), process_(process), cgroup_(std::move(cgroup)) {
  if (cgroup_.empty()) {
    const auto own = ParseOwnCgroup(FileText(paths_.proc / "self/cgroup"));
    if (own) cgroup_ = paths_.sys / "fs/cgroup" / fs::path(*own).relative_path();
  }
  if (const auto cpu = ParseProcStat(FileText(paths_.proc / "stat"))) {
    num_cpus_ = static_cast<int>(cpu->cores.size());
  }
  FindEnergyZones();
  FindNetworkCards();
  for (const fs::path& device : Entries(paths_.sys / "class/infiniband")) {
    for (const fs::path& port : Entries(device / "ports"))
      rdma_counters_.push_back(port / "counters");
  }
  Read(absl::ZeroDuration());
}

HostReading HostReader::Read(absl::Duration since_last) {
  const double seconds = absl::ToDoubleSeconds(since_last);
  HostReading host;
  ReadCpu(host);
  ReadMemory(host);
  ReadNetwork(host, seconds);
  ReadRdma(host, seconds);
  ReadEnergy(host, seconds);
  ReadCgroup(host, seconds);
  if (process_) ReadProcess(host, seconds);
  return host;
}

void HostReader::ReadCpu(HostReading& host) {
  auto now = ParseProcStat(FileText(paths_.proc / "stat"));
  if (now && cpu_) {
    host.cpu_percent = BusyPercent(cpu_->all, now->all);
    for (const auto& [core, times] : now->cores) {
      const auto before = cpu_->cores.find(core);
      if (before == cpu_->cores.end()) continue;
      const auto busy = BusyPercent(before->second, times);
      if (busy) host.cpu_max_core_percent = std::max(host.cpu_max_core_percent.value_or(0), *busy);
    }
  }
  cpu_ = std::move(now);
  const std::string loads = FileText(paths_.proc / "loadavg");
  const auto load = WordsOf(loads);
  if (!load.empty()) host.load1 = FiniteNumber(load[0]);
}

void HostReader::ReadMemory(HostReading& host) {
  const auto mb = ParseMegabytes(FileText(paths_.proc / "meminfo"));
  const auto value = [&](const char* name) -> std::optional<double> {
    const auto found = mb.find(name);
    return found == mb.end() ? std::nullopt : std::optional(found->second);
  };
  host.memory_total_mb = value("MemTotal");
  host.memory_free_mb = value("MemFree");
  host.memory_available_mb = value("MemAvailable");
  if (host.memory_total_mb && host.memory_available_mb) {
    host.memory_used_mb = *host.memory_total_mb - *host.memory_available_mb;
  }
  if (const auto buffers = value("Buffers"), cached = value("Cached"); buffers && cached) {
    // Shared memory is counted as cache but cannot be dropped.
    host.buffers_and_cache_mb =
        *buffers + *cached + value("SReclaimable").value_or(0) - value("Shmem").value_or(0);
  }
  if (const auto total = value("SwapTotal"), free = value("SwapFree"); total && free) {
    host.swap_used_mb = *total - *free;
  }
}

// Cards, not bridges and tunnels, through which the same bytes go once more.
void HostReader::FindNetworkCards() {
  std::error_code ignored;
  for (const fs::path& entry : Entries(paths_.sys / "class/net")) {
    if (fs::exists(entry / "device", ignored)) network_cards_.push_back(entry.filename());
  }
}

void HostReader::ReadNetwork(HostReading& host, double seconds) {
  const auto interfaces = ParseNetDev(FileText(paths_.proc / "net/dev"));
  if (interfaces.empty()) return;
  double rx = 0, tx = 0;
  for (const auto& [name, bytes] : interfaces) {
    const bool counts =
        network_cards_.empty()
            ? name != "lo"
            : std::find(network_cards_.begin(), network_cards_.end(), name) != network_cards_.end();
    if (!counts) continue;
    rx += static_cast<double>(bytes.rx);
    tx += static_cast<double>(bytes.tx);
  }
  host.net_rx_bytes_per_s = net_rx_.Next(rx, seconds);
  host.net_tx_bytes_per_s = net_tx_.Next(tx, seconds);
}

void HostReader::ReadRdma(HostReading& host, double seconds) {
  if (rdma_counters_.empty()) return;
  double rx = 0, tx = 0;
  for (const fs::path& counters : rdma_counters_) {
    rx += kRdmaBytesPerCount *
          static_cast<double>(FileNumber(counters / "port_rcv_data").value_or(0));
    tx += kRdmaBytesPerCount *
          static_cast<double>(FileNumber(counters / "port_xmit_data").value_or(0));
  }
  host.rdma_rx_bytes_per_s = rdma_rx_.Next(rx, seconds);
  host.rdma_tx_bytes_per_s = rdma_tx_.Next(tx, seconds);
}

void HostReader::FindEnergyZones() {
  for (const fs::path& entry : Entries(paths_.sys / "class/powercap")) {
    const std::string name = entry.filename();
    // Packages only: "intel-rapl:0" holds its parts "intel-rapl:0:1".
    if (!name.starts_with("intel-rapl:") || std::count(name.begin(), name.end(), ':') != 1)
      continue;
    if (!FileNumber(entry / "energy_uj")) continue;  // readable by root only
    energy_zones_.push_back(
        {entry / "energy_uj", FileNumber(entry / "max_energy_range_uj").value_or(0), std::nullopt});
  }
}

void HostReader::ReadEnergy(HostReading& host, double seconds) {
  double joules = 0;
  bool complete = !energy_zones_.empty();
  for (EnergyZone& zone : energy_zones_) {
    const auto now = FileNumber(zone.counter);
    const auto last = std::exchange(zone.last, now);
    complete = complete && now && last;
    if (!complete) continue;
    const uint64_t microjoules = *now >= *last ? *now - *last : *now + zone.range - *last;
    joules += static_cast<double>(microjoules) / 1e6;
  }
  if (!complete) return;
  energy_j_ = energy_j_.value_or(0) + joules;
  if (seconds > 0) host.power_w = joules / seconds;
}

void HostReader::ReadCgroup(HostReading& host, double seconds) {
  if (cgroup_.empty()) return;
  const auto usage_us = FindCounter(FileText(cgroup_ / "cpu.stat"), "usage_usec");
  const auto rate = cgroup_cpu_.Next(
      usage_us ? std::optional(static_cast<double>(*usage_us)) : std::nullopt, seconds);
  if (rate) host.cgroup_cpu_percent = *rate / 1e6 * 100;
  if (const auto bytes = FileNumber(cgroup_ / "memory.current")) {
    host.cgroup_memory_mb = static_cast<double>(*bytes) / kBytesPerMb;
  }
}

void HostReader::ReadProcess(HostReading& host, double seconds) {
  since_found_ += absl::Seconds(seconds);
  if (since_found_ >= kProcessPeriod) {
    FindProcesses();
    since_found_ = absl::ZeroDuration();
  }
  int64_t spent = 0;
  std::map<pid_t, int64_t> jiffies;
  for (pid_t pid : processes_) {
    const auto stat = ParseProcessStat(FileText(paths_.proc / std::to_string(pid) / "stat"));
    if (!stat) continue;
    const auto before = process_jiffies_.find(pid);
    if (before != process_jiffies_.end()) spent += stat->cpu_jiffies - before->second;
    jiffies[pid] = stat->cpu_jiffies;
  }
  const bool has_before = !process_jiffies_.empty();
  process_jiffies_ = std::move(jiffies);
  if (process_jiffies_.empty()) return;
  host.process_pss_mb = process_pss_mb_;
  if (has_before && seconds > 0) {
    host.process_cpu_percent = 100.0 * static_cast<double>(std::max<int64_t>(spent, 0)) /
                               static_cast<double>(sysconf(_SC_CLK_TCK)) / seconds;
  }
}

void HostReader::FindProcesses() {
  std::multimap<pid_t, pid_t> children;
  for (const fs::path& entry : Entries(paths_.proc)) {
    const auto pid = WholeNumber<pid_t>(entry.filename().string());
    if (!pid) continue;
    if (const auto stat = ParseProcessStat(FileText(entry / "stat"))) {
      children.emplace(stat->parent, *pid);
    }
  }
  processes_ = {*process_};
  for (size_t i = 0; i < processes_.size(); ++i) {
    const auto [first, last] = children.equal_range(processes_[i]);
    for (auto child = first; child != last; ++child) processes_.push_back(child->second);
  }
  process_pss_mb_.reset();
  for (pid_t pid : processes_) {
    const auto mb = ParseMegabytes(FileText(paths_.proc / std::to_string(pid) / "smaps_rollup"));
    const auto pss = mb.find("Pss");
    if (pss != mb.end()) process_pss_mb_ = process_pss_mb_.value_or(0) + pss->second;
  }
}

}  // namespace fulgur::bench

#include "bench/results/utilisation_log.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "base/status_macros.h"
#include "bench/results/json_fields.h"
#include "bench/results/strings.h"
#include "bench/results/telemetry_reader.h"
#include "fmt/format.h"
#include "io/json.h"
#include "io/mapped_file.h"

namespace fulgur::bench {
namespace {

constexpr int64_t kNsPerSecond = 1'000'000'000;

// Epoch and local time in front, CPU and two memory numbers behind; two columns a device between.
constexpr size_t kColumnsBesideDevices = 5;

void ReadComment(std::string_view line, UtilisationLog& log) {
  for (const std::string_view word : Words(line, " \t")) {
    if (word.starts_with("tag=")) log.tag = word.substr(4);
    if (word.starts_with("host=")) log.host = word.substr(5);
    if (word.starts_with("interval=")) {
      const std::string_view value = word.substr(9);
      const auto seconds = ParseNumber(value.substr(0, value.find('s')));
      if (seconds && *seconds > 0) log.interval_s = *seconds;
    }
  }
}

// "-" and "NA" stand for what was not known; anything else that is no number breaks the line.
bool ReadCell(std::string_view text, std::optional<double>& value) {
  if (text == "-" || text == "NA") return true;
  value = ParseNumber(text);
  return value.has_value();
}

std::optional<UtilisationSample> ParseColumns(std::string_view line) {
  const std::vector<std::string_view> fields = Words(line, " \t");
  if (fields.size() < kColumnsBesideDevices + 2) return std::nullopt;
  if ((fields.size() - kColumnsBesideDevices) % 2 != 0) return std::nullopt;
  const auto epoch = ParseNumber(fields[0]);
  // Seconds of this century; others are another column or another unit.
  if (!epoch || *epoch < 9e8 || *epoch > 4.2e9) return std::nullopt;
  UtilisationSample sample;
  sample.wall_ns = static_cast<int64_t>(*epoch * 1e9);
  const size_t devices = (fields.size() - kColumnsBesideDevices) / 2;
  bool good = true;
  for (size_t i = 0; i < devices; ++i) {
    DeviceSample device;
    good = good && ReadCell(fields[2 + 2 * i], device.busy_percent) &&
           ReadCell(fields[3 + 2 * i], device.memory_mb);
    sample.devices.push_back(device);
  }
  const size_t n = fields.size();
  good = good && ReadCell(fields[n - 3], sample.cpu_percent) &&
         ReadCell(fields[n - 2], sample.memory_used_mb) &&
         ReadCell(fields[n - 1], sample.memory_total_mb);
  return good ? std::optional(std::move(sample)) : std::nullopt;
}

DeviceSample ParseDevice(const JsonArray& values) {
  DeviceSample device;
  std::optional<double>* const members[] = {&device.busy_percent, &device.memory_mb,
                                            &device.power_w, &device.temperature_c};
  size_t i = 0;
  for (const JsonElement value : values) {
    if (i == std::size(members)) break;
    *members[i++] = NumberOf(value);
  }
  return device;
}

std::optional<UtilisationSample> ParseTick(const JsonObject& tick) {
  const auto time = IntegerAt(tick, "t_ns");
  if (!time || *time <= 0) return std::nullopt;
  UtilisationSample sample;
  sample.wall_ns = *time;
  if (const auto devices = ArrayAt(tick, "dev")) {
    for (const JsonElement element : *devices) {
      JsonArray values;
      if (element.get(values) != simdjson::SUCCESS) return std::nullopt;
      sample.devices.push_back(ParseDevice(values));
    }
  }
  sample.cpu_percent = NumberAt(tick, "cpu");
  sample.cpu_max_core_percent = NumberAt(tick, "cpu_max_core");
  sample.memory_available_mb = NumberAt(tick, "mem_avail_mb");
  sample.memory_total_mb = NumberAt(tick, "mem_total_mb");
  const auto free = NumberAt(tick, "mem_free_mb");
  if (free && sample.memory_total_mb) sample.memory_used_mb = *sample.memory_total_mb - *free;
  return sample;
}

void ReadHeader(const JsonObject& header, UtilisationLog& log) {
  log.host = TextAt(header, "host");
  log.tag = TextAt(header, "tag");
  log.interval_s = NumberAt(header, "interval_ms").value_or(0.0) / 1000.0;
  for (const JsonObject& device : ObjectsAt(header, "devices")) {
    log.device_kind = TextAt(device, "kind");
  }
}

// aiperf has a line for each device and moment; a sample is all devices at one moment. Devices of
// other hosts are sampled at other moments and are not known then.
class DeviceLines {
 public:
  void Add(DeviceReading reading) {
    devices_.insert(reading.device);
    readings_[reading.wall_ns].push_back(std::move(reading));
  }

  void AddSamples(UtilisationLog& log) const {
    std::vector<double> gaps_s;
    for (const auto& [time, readings] : readings_) {
      if (!log.samples.empty()) {
        gaps_s.push_back(static_cast<double>(time - log.samples.back().wall_ns) /
                         static_cast<double>(kNsPerSecond));
      }
      log.samples.push_back(SampleOf(time, readings));
      log.device_kind = readings.front().platform;
    }
    if (gaps_s.empty()) return;
    const auto middle = gaps_s.begin() + static_cast<std::ptrdiff_t>(gaps_s.size() / 2);
    std::nth_element(gaps_s.begin(), middle, gaps_s.end());
    log.interval_s = *middle;
  }

 private:
  UtilisationSample SampleOf(int64_t time, const std::vector<DeviceReading>& readings) const {
    UtilisationSample sample;
    sample.wall_ns = time;
    sample.devices.resize(devices_.size());
    for (const DeviceReading& reading : readings) {
      const auto place = std::distance(devices_.begin(), devices_.find(reading.device));
      sample.devices[static_cast<size_t>(place)] = reading.sample;
    }
    return sample;
  }

  std::set<std::string> devices_;
  std::map<int64_t, std::vector<DeviceReading>> readings_;  // by time
};

// False if the line is neither header, tick nor footer.
bool ReadJsonLine(std::string_view line, DeviceLines& devices, UtilisationLog& log) {
  const auto document = io::JsonDocument::Parse(line, "the line");
  JsonObject object;
  if (!document.ok() || document->root().get(object) != simdjson::SUCCESS) return false;
  if (FieldAt(object, "format")) {
    ReadHeader(object, log);
    return true;
  }
  if (FieldAt(object, "end")) return true;
  if (FieldAt(object, "telemetry_data")) {
    auto reading = ReadDeviceLine(object);
    if (!reading) return false;
    devices.Add(*std::move(reading));
    return true;
  }
  auto sample = ParseTick(object);
  if (!sample) return false;
  log.samples.push_back(*std::move(sample));
  return true;
}

// A device that drops out of a line shifts no other: such lines are broken, not shorter.
void DropOtherDeviceCounts(UtilisationLog& log) {
  std::map<size_t, int64_t> counts;
  for (const UtilisationSample& sample : log.samples) ++counts[sample.devices.size()];
  if (counts.size() < 2) return;
  const size_t usual =
      std::max_element(counts.begin(), counts.end(), [](const auto& a, const auto& b) {
        return a.second < b.second;
      })->first;
  const size_t dropped = std::erase_if(log.samples, [usual](const UtilisationSample& sample) {
    return sample.devices.size() != usual;
  });
  log.broken_lines += static_cast<int64_t>(dropped);
  log.problems.push_back(fmt::format(
      "{} line(s) have another number of devices than {} and are left out", dropped, usual));
}

void PutInOrder(UtilisationLog& log) {
  const auto earlier = [](const UtilisationSample& a, const UtilisationSample& b) {
    return a.wall_ns < b.wall_ns;
  };
  int64_t jumps = 0;
  for (size_t i = 1; i < log.samples.size(); ++i) {
    if (earlier(log.samples[i], log.samples[i - 1])) ++jumps;
  }
  if (jumps == 0) return;
  log.problems.push_back(
      fmt::format("the clock goes back {} time(s); the samples were sorted", jumps));
  std::stable_sort(log.samples.begin(), log.samples.end(), earlier);
}

// A value with the seconds that it stands for.
struct Weighted {
  double value;
  double weight;
};

class Average {
 public:
  void Add(const std::optional<double>& value, double weight) {
    if (!value) return;
    sum_ += *value * weight;
    weight_ += weight;
    max_ = std::max(max_.value_or(*value), *value);
  }
  std::optional<double> mean() const {
    return weight_ > 0 ? std::optional(sum_ / weight_) : std::nullopt;
  }
  const std::optional<double>& max() const { return max_; }

 private:
  double sum_ = 0.0;
  double weight_ = 0.0;
  std::optional<double> max_;
};

std::optional<double> WeightedQuantile(const std::vector<Weighted>& ascending, double share) {
  double total = 0.0;
  for (const Weighted& entry : ascending) total += entry.weight;
  double seen = 0.0;
  for (const Weighted& entry : ascending) {
    seen += entry.weight;
    if (seen >= share * total) return entry.value;
  }
  return std::nullopt;
}

// A sample stands for the time until the next, at most two intervals of it: what a gap hid is not
// known.
double SecondsOf(const UtilisationLog& log, size_t i) {
  const double usual = log.interval_s > 0 ? log.interval_s : 1.0;
  if (i + 1 >= log.samples.size()) return usual;
  const int64_t gap = log.samples[i + 1].wall_ns - log.samples[i].wall_ns;
  const double seconds = static_cast<double>(gap) / static_cast<double>(kNsPerSecond);
  return seconds <= 0 ? 0.0 : std::min(seconds, 2.0 * usual);
}

std::optional<double> Total(const std::vector<DeviceSample>& devices,
                            std::optional<double> DeviceSample::*member) {
  std::optional<double> sum;
  for (const DeviceSample& device : devices) {
    if (device.*member) sum = sum.value_or(0.0) + *(device.*member);
  }
  return sum;
}

struct Accumulator {
  Average busy, memory, cpu, core, used, unavailable, power;
  std::vector<Average> by_device;
  std::vector<Weighted> busy_values;
  double idle_seconds = 0.0;
  double device_seconds = 0.0;
  double energy_j = 0.0;

  void Add(const UtilisationSample& sample, double seconds) {
    by_device.resize(std::max(by_device.size(), sample.devices.size()));
    for (size_t i = 0; i < sample.devices.size(); ++i) AddDevice(sample.devices[i], i, seconds);
    cpu.Add(sample.cpu_percent, seconds);
    core.Add(sample.cpu_max_core_percent, seconds);
    used.Add(sample.memory_used_mb, seconds);
    if (sample.memory_total_mb && sample.memory_available_mb) {
      unavailable.Add(*sample.memory_total_mb - *sample.memory_available_mb, seconds);
    }
    const auto watts = Total(sample.devices, &DeviceSample::power_w);
    power.Add(watts, seconds);
    energy_j += watts.value_or(0.0) * seconds;
  }

  void AddDevice(const DeviceSample& device, size_t index, double seconds) {
    memory.Add(device.memory_mb, seconds);
    if (!device.busy_percent) return;
    busy.Add(device.busy_percent, seconds);
    by_device[index].Add(device.busy_percent, seconds);
    busy_values.push_back({*device.busy_percent, seconds});
    device_seconds += seconds;
    if (*device.busy_percent < 5.0) idle_seconds += seconds;
  }
};

void SetImbalance(UtilisationSummary& summary) {
  const auto& means = summary.device_busy_avg;
  if (means.size() < 2 || summary.busy_avg.value_or(0.0) <= 0) return;
  const auto [low, high] = std::minmax_element(means.begin(), means.end());
  summary.imbalance = (*high - *low) / *summary.busy_avg;
}

UtilisationSummary Finish(Accumulator sums) {
  UtilisationSummary summary;
  std::sort(sums.busy_values.begin(), sums.busy_values.end(),
            [](const Weighted& a, const Weighted& b) { return a.value < b.value; });
  summary.devices = static_cast<int32_t>(sums.by_device.size());
  summary.busy_avg = sums.busy.mean();
  summary.busy_max = sums.busy.max();
  summary.busy_p50 = WeightedQuantile(sums.busy_values, 0.50);
  summary.busy_p95 = WeightedQuantile(sums.busy_values, 0.95);
  if (sums.device_seconds > 0) summary.idle_share = sums.idle_seconds / sums.device_seconds;
  for (const Average& device : sums.by_device) {
    if (device.mean()) summary.device_busy_avg.push_back(*device.mean());
  }
  SetImbalance(summary);
  summary.device_memory_avg_mb = sums.memory.mean();
  summary.device_memory_max_mb = sums.memory.max();
  summary.cpu_avg_percent = sums.cpu.mean();
  summary.cpu_max_core_percent = sums.core.max();
  summary.host_memory_used_mb = sums.used.mean();
  summary.host_memory_unavailable_mb = sums.unavailable.mean();
  summary.power_avg_w = sums.power.mean();
  if (summary.power_avg_w) summary.energy_j = sums.energy_j;
  return summary;
}

UtilisationPoint PointOf(const std::vector<UtilisationSample>& samples, size_t begin, size_t end) {
  Average mean, cpu, memory;
  std::vector<Average> by_device;
  for (size_t i = begin; i < end; ++i) {
    by_device.resize(std::max(by_device.size(), samples[i].devices.size()));
    for (size_t d = 0; d < samples[i].devices.size(); ++d) {
      mean.Add(samples[i].devices[d].busy_percent, 1.0);
      by_device[d].Add(samples[i].devices[d].busy_percent, 1.0);
      memory.Add(samples[i].devices[d].memory_mb, 1.0);
    }
    cpu.Add(samples[i].cpu_percent, 1.0);
  }
  UtilisationPoint point;
  point.seconds = static_cast<double>(samples[begin].wall_ns - samples.front().wall_ns) / 1e9;
  point.busy_mean = mean.mean();
  point.cpu_percent = cpu.mean();
  point.memory_mb = memory.mean();
  for (const Average& device : by_device) {
    if (!device.mean()) continue;
    const double value = *device.mean();
    point.busy_min_device = std::min(point.busy_min_device.value_or(value), value);
    point.busy_max_device = std::max(point.busy_max_device.value_or(value), value);
  }
  return point;
}

std::vector<UtilisationPoint> Series(const std::vector<UtilisationSample>& samples) {
  constexpr size_t kMostPoints = 600;
  std::vector<UtilisationPoint> series;
  const size_t bucket = (samples.size() + kMostPoints - 1) / kMostPoints;
  for (size_t begin = 0; begin < samples.size(); begin += bucket) {
    series.push_back(PointOf(samples, begin, std::min(begin + bucket, samples.size())));
  }
  return series;
}

}  // namespace

absl::StatusOr<UtilisationLog> ParseUtilisationLog(std::string_view text, std::string_view source) {
  UtilisationLog log;
  const bool json = Trimmed(text).starts_with('{');
  DeviceLines devices;
  while (!text.empty()) {
    const std::string_view line = Trimmed(TakeLine(text));
    if (line.empty()) continue;
    if (line.starts_with('#')) {
      ReadComment(line, log);
    } else if (json) {
      if (!ReadJsonLine(line, devices, log)) ++log.broken_lines;
    } else if (auto sample = ParseColumns(line)) {
      log.samples.push_back(*std::move(sample));
    } else {
      ++log.broken_lines;
    }
  }
  devices.AddSamples(log);
  if (log.samples.empty()) {
    return absl::NotFoundError(fmt::format(
        "{} is no utilisation log: not one line has a time, two numbers per device, CPU and memory",
        source));
  }
  if (log.broken_lines > 0) {
    log.problems.push_back(fmt::format("{} broken line(s) are left out", log.broken_lines));
  }
  DropOtherDeviceCounts(log);
  PutInOrder(log);
  return log;
}

absl::StatusOr<UtilisationLog> ReadUtilisationLog(const std::filesystem::path& file) {
  ASSIGN_OR_RETURN(const io::MappedFile mapped, io::MappedFile::Open(file.string()));
  return ParseUtilisationLog(mapped.text(), file.string());
}

UtilisationSummary SummarizeUtilisation(const UtilisationLog& log, int64_t begin_ns,
                                        int64_t end_ns) {
  Accumulator sums;
  UtilisationSummary bounds;
  for (size_t i = 0; i < log.samples.size(); ++i) {
    const UtilisationSample& sample = log.samples[i];
    if (sample.wall_ns < begin_ns || sample.wall_ns > end_ns) continue;
    sums.Add(sample, SecondsOf(log, i));
    if (bounds.samples++ == 0) bounds.wall_start_ns = sample.wall_ns;
    bounds.wall_end_ns = sample.wall_ns;
  }
  UtilisationSummary summary = Finish(std::move(sums));
  summary.samples = bounds.samples;
  summary.wall_start_ns = bounds.wall_start_ns;
  summary.wall_end_ns = bounds.wall_end_ns;
  return summary;
}

UtilisationSummary SummarizeUtilisation(const UtilisationLog& log) {
  UtilisationSummary summary = SummarizeUtilisation(log, INT64_MIN, INT64_MAX);
  summary.series = Series(log.samples);
  return summary;
}

}  // namespace fulgur::bench

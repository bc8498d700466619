// Accelerators through the vendors' command-line tools.
#include <algorithm>
#include <atomic>
#include <filesystem>
#include <utility>

#include "absl/time/clock.h"
#include "base/status_macros.h"
#include "bench/sample/child_process.h"
#include "bench/sample/device_source.h"
#include "bench/sample/npu_smi_text.h"
#include "fmt/format.h"

namespace fulgur::bench {
namespace {

// npu-smi needs seconds on a machine with many dies.
constexpr absl::Duration kToolLimit = absl::Seconds(30);

struct DeviceTable {
  std::vector<SampledDevice> devices;
  std::vector<DeviceReading> readings;
};

DeviceTable TableOf(std::vector<DeviceRow> rows) {
  DeviceTable table;
  for (DeviceRow& row : rows) {
    table.devices.push_back(std::move(row.device));
    table.readings.push_back(row.reading);
  }
  return table;
}

// Where driver packages put npu-smi, if PATH does not say.
std::string NpuSmiProgram() {
  std::error_code ignored;
  for (const char* path : {"/usr/local/bin/npu-smi", "/usr/local/sbin/npu-smi"}) {
    if (std::filesystem::exists(path, ignored)) return path;
  }
  return "npu-smi";
}

absl::StatusOr<std::vector<DeviceRow>> RunNpuSmi(const std::string& program) {
  ASSIGN_OR_RETURN(const std::string text, OutputOf({program, "info"}, kToolLimit));
  auto rows = ParseNpuSmiTable(text);
  if (rows.empty()) {
    return absl::NotFoundError(
        fmt::format("`{} info` shows no device; it printed: {}", program, text.substr(0, 200)));
  }
  return rows;
}

class NpuSmiSource : public DeviceSource {
 public:
  NpuSmiSource(std::string program, std::vector<SampledDevice> devices)
      : program_(std::move(program)), devices_(std::move(devices)) {}

  std::string name() const override { return "npu-smi"; }
  const std::vector<SampledDevice>& devices() const override { return devices_; }

  absl::StatusOr<std::vector<DeviceReading>> Read() override {
    std::vector<DeviceReading> readings(devices_.size());
    const auto rows = RunNpuSmi(program_);
    if (!rows.ok()) return readings;  // the tool fails while a device resets, and recovers
    for (const DeviceRow& row : *rows) {
      const auto same = [&](const SampledDevice& device) {
        return device.card == row.device.card && device.chip == row.device.chip;
      };
      const auto device = std::find_if(devices_.begin(), devices_.end(), same);
      if (device == devices_.end()) continue;
      readings[static_cast<size_t>(device - devices_.begin())] = row.reading;
    }
    return readings;
  }

 private:
  const std::string program_;
  const std::vector<SampledDevice> devices_;
};

// What the sources with one long-lived child share: a round of lines is a reading.
class StreamSource : public DeviceSource {
 public:
  StreamSource(std::vector<std::string> argv, DeviceTable table)
      : argv_(std::move(argv)),
        devices_(std::move(table.devices)),
        readings_(std::move(table.readings)) {}

  const std::vector<SampledDevice>& devices() const override { return devices_; }
  bool has_own_pace() const override { return true; }
  void Cancel() override { cancelled_ = true; }

  absl::Status Launch() {
    ASSIGN_OR_RETURN(child_, ChildProcess::Start(argv_));
    return absl::OkStatus();
  }

  // Reads lines until every device has its line. A tool that ended is started again.
  absl::StatusOr<std::vector<DeviceReading>> Read() override {
    if (child_ == nullptr) RETURN_IF_ERROR(Launch());
    std::vector<bool> seen(devices_.size(), false);
    const absl::Time deadline = absl::Now() + kToolLimit;
    while (std::find(seen.begin(), seen.end(), false) != seen.end()) {
      const auto line = child_->ReadLine(kPatience);
      if (cancelled_) return absl::CancelledError("stopped");
      if (absl::IsDeadlineExceeded(line.status()) && absl::Now() < deadline) continue;
      if (!line.ok()) {
        child_.reset();
        return absl::UnavailableError(
            fmt::format("{}: {}", argv_[0], std::string(line.status().message())));
      }
      const std::optional<size_t> device = Take(*line);
      if (!device) continue;
      // A device that falls silent must not hold up the others.
      if (seen[*device]) break;
      seen[*device] = true;
    }
    return readings_;
  }

 protected:
  // Puts a line's values in `readings_`; the device it was about.
  virtual std::optional<size_t> Take(const std::string& line) = 0;

  static constexpr absl::Duration kPatience = absl::Milliseconds(200);

  const std::vector<std::string> argv_;
  const std::vector<SampledDevice> devices_;
  std::vector<DeviceReading> readings_;

 private:
  std::unique_ptr<ChildProcess> child_;
  std::atomic<bool> cancelled_ = false;
};

class NpuWatchSource : public StreamSource {
 public:
  using StreamSource::StreamSource;

  std::string name() const override { return "npu-smi watch"; }

 protected:
  std::optional<size_t> Take(const std::string& line) override {
    const auto row = parser_.ParseLine(line);
    if (!row) return std::nullopt;
    for (size_t i = 0; i < devices_.size(); ++i) {
      if (devices_[i].card != row->card || devices_[i].chip.value_or(0) != row->chip) continue;
      readings_[i] = row->reading;
      if (row->memory_percent && devices_[i].memory_total_mb) {
        readings_[i].memory_used_mb = *row->memory_percent / 100 * *devices_[i].memory_total_mb;
      }
      return i;
    }
    return std::nullopt;
  }

 private:
  NpuWatchParser parser_;
};

class NvidiaSmiSource : public StreamSource {
 public:
  using StreamSource::StreamSource;

  std::string name() const override { return "nvidia-smi"; }

 protected:
  std::optional<size_t> Take(const std::string& line) override {
    const auto row = ParseNvidiaSmiLine(line);
    if (!row) return std::nullopt;
    for (size_t i = 0; i < devices_.size(); ++i) {
      if (devices_[i].id != row->device.id) continue;
      readings_[i] = row->reading;
      return i;
    }
    return std::nullopt;
  }
};

}  // namespace

DeviceSourceOrError OpenNpuSmi() {
  const std::string program = NpuSmiProgram();
  ASSIGN_OR_RETURN(auto rows, RunNpuSmi(program));
  return std::make_unique<NpuSmiSource>(program, TableOf(std::move(rows)).devices);
}

DeviceSourceOrError OpenNpuSmiWatch() {
  const std::string program = NpuSmiProgram();
  ASSIGN_OR_RETURN(auto rows, RunNpuSmi(program));
  // Columns: power, temperature, AI core, AI CPU, control CPU, memory, bandwidth.
  const std::vector<std::string> argv = {program, "info", "watch", "-d", "1", "-s", "ptaicmb"};
  auto source = std::make_unique<NpuWatchSource>(argv, TableOf(std::move(rows)));
  RETURN_IF_ERROR(source->Launch());
  // An old tool has no `watch`, and says so at once.
  RETURN_IF_ERROR(source->Read().status());
  return source;
}

DeviceSourceOrError OpenNvidiaSmi() {
  std::vector<std::string> argv = {"nvidia-smi", fmt::format("--query-gpu={}", kNvidiaSmiFields),
                                   "--format=csv,noheader,nounits"};
  ASSIGN_OR_RETURN(const std::string text, OutputOf(argv, kToolLimit));
  std::vector<DeviceRow> rows;
  for (size_t start = 0; start < text.size();) {
    const size_t end = std::min(text.find('\n', start), text.size());
    if (auto row = ParseNvidiaSmiLine(text.substr(start, end - start))) rows.push_back(*row);
    start = end + 1;
  }
  if (rows.empty()) {
    return absl::NotFoundError("nvidia-smi shows no device; it printed: " + text.substr(0, 200));
  }
  argv.insert(argv.end(), {"-l", "1"});
  auto source = std::make_unique<NvidiaSmiSource>(argv, TableOf(std::move(rows)));
  RETURN_IF_ERROR(source->Launch());
  return source;
}

DeviceSourceOrError OpenDeviceSource(DeviceBackend backend, const std::string& library) {
  switch (backend) {
    case DeviceBackend::kNone:
      return nullptr;
    case DeviceBackend::kDcmi:
      return OpenDcmi(library);
    case DeviceBackend::kNpuSmiWatch:
      return OpenNpuSmiWatch();
    case DeviceBackend::kNpuSmi:
      return OpenNpuSmi();
    case DeviceBackend::kNvml:
      return OpenNvml(library);
    case DeviceBackend::kNvidiaSmi:
      return OpenNvidiaSmi();
    case DeviceBackend::kAuto:
      break;
  }
  for (const auto candidate :
       {DeviceBackend::kDcmi, DeviceBackend::kNpuSmiWatch, DeviceBackend::kNpuSmi,
        DeviceBackend::kNvml, DeviceBackend::kNvidiaSmi}) {
    if (auto source = OpenDeviceSource(candidate, library); source.ok()) return source;
  }
  return nullptr;
}

}  // namespace fulgur::bench

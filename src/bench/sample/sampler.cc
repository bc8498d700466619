#include "bench/sample/sampler.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <thread>
#include <utility>

#include "absl/time/clock.h"
#include "base/status_macros.h"
#include "bench/sample/device_poller.h"
#include "bench/sample/device_source.h"
#include "bench/sample/host_reader.h"
#include "bench/sample/sample_log.h"
#include "bench/sample/tick_schedule.h"
#include "fmt/format.h"

namespace fulgur::bench {
namespace {

namespace fs = std::filesystem;
using Clock = TickSchedule::Clock;

constexpr absl::Duration kShortestInterval = absl::Milliseconds(10);
constexpr absl::Duration kLongestInterval = absl::Hours(1);
constexpr int kStaleAfterIntervals = 3;
constexpr size_t kMaxPeriodsKept = 1 << 16;  // for the percentile: a day at more than one a second

constexpr std::pair<std::string_view, LogFormat> kFormats[] = {
    {"native", LogFormat::kNative}, {"seed", LogFormat::kSeed}, {"both", LogFormat::kBoth}};

constexpr std::pair<std::string_view, DeviceBackend> kBackends[] = {
    {"auto", DeviceBackend::kAuto},           {"none", DeviceBackend::kNone},
    {"dcmi", DeviceBackend::kDcmi},           {"npu-smi-watch", DeviceBackend::kNpuSmiWatch},
    {"npu-smi", DeviceBackend::kNpuSmi},      {"nvml", DeviceBackend::kNvml},
    {"nvidia-smi", DeviceBackend::kNvidiaSmi}};

template <typename Value, size_t N>
absl::StatusOr<Value> FindName(const std::pair<std::string_view, Value> (&names)[N],
                               std::string_view what, std::string_view name) {
  std::string known;
  for (const auto& [candidate, value] : names) {
    if (candidate == name) return value;
    known += (known.empty() ? "" : ", ") + std::string(candidate);
  }
  return absl::InvalidArgumentError(
      fmt::format("unknown {} '{}'; there are {}", what, name, known));
}

std::string HostName() {
  std::array<char, 256> name{};
  gethostname(name.data(), name.size() - 1);
  return name.data();
}

int64_t Nanoseconds(clockid_t clock) {
  timespec time{};
  clock_gettime(clock, &time);
  return int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

// A log file that grows by whole lines.
class LogFile {
 public:
  static absl::StatusOr<LogFile> Open(const fs::path& path, bool append) {
    const int flags = O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | (append ? 0 : O_EXCL);
    const int file = open(path.c_str(), flags, 0644);
    if (file < 0 && errno == EEXIST) {
      return absl::AlreadyExistsError(fmt::format(
          "{} exists; choose another tag, append to it, or move it away", path.string()));
    }
    if (file < 0) {
      return absl::PermissionDeniedError(
          fmt::format("cannot write {}: {}", path.string(), std::strerror(errno)));
    }
    return LogFile(path, file);
  }

  LogFile(LogFile&& other) noexcept
      : path_(std::move(other.path_)), file_(std::exchange(other.file_, -1)) {}
  LogFile& operator=(LogFile&&) = delete;
  ~LogFile() {
    if (file_ >= 0) close(file_);
  }

  absl::Status Write(const std::string& line) const {
    const ssize_t written = write(file_, line.data(), line.size());
    if (written == static_cast<ssize_t>(line.size())) return absl::OkStatus();
    return absl::ResourceExhaustedError(fmt::format(
        "cannot write {}: {}", path_.string(), written < 0 ? std::strerror(errno) : "disk full"));
  }

  const fs::path& path() const { return path_; }

 private:
  LogFile(fs::path path, int file) : path_(std::move(path)), file_(file) {}

  fs::path path_;
  int file_;
};

struct Logs {
  std::optional<LogFile> native;
  std::optional<LogFile> seed;
};

absl::StatusOr<Logs> OpenLogs(const SamplerOptions& options) {
  std::error_code error;
  fs::create_directories(options.folder, error);
  Logs logs;
  for (const LogFormat format : {LogFormat::kNative, LogFormat::kSeed}) {
    if (options.format != format && options.format != LogFormat::kBoth) continue;
    const fs::path path = SampleLogPath(options.folder, options.tag, format);
    ASSIGN_OR_RETURN(LogFile file, LogFile::Open(path, options.append));
    (format == LogFormat::kNative ? logs.native : logs.seed).emplace(std::move(file));
  }
  return logs;
}

absl::Status CheckOptions(const SamplerOptions& options) {
  if (!IsValidSampleTag(options.tag)) {
    return absl::InvalidArgumentError(fmt::format(
        "tag '{}' is no name for a file; up to 100 letters, digits, '.', '_' and '-' are accepted",
        options.tag));
  }
  if (options.interval < kShortestInterval || options.interval > kLongestInterval) {
    return absl::InvalidArgumentError(
        fmt::format("interval {} is out of range; 10ms to 1h are accepted",
                    absl::FormatDuration(options.interval)));
  }
  if (options.process && !fs::exists(options.proc / std::to_string(*options.process))) {
    return absl::NotFoundError(fmt::format("there is no process {}", *options.process));
  }
  return absl::OkStatus();
}

// How regular the ticks were.
class PeriodStatistics {
 public:
  void Add(double ms) {
    sum_ms_ += ms;
    if (periods_.size() < kMaxPeriodsKept) {
      periods_.push_back(ms);
    } else {
      periods_[static_cast<size_t>(count_) % kMaxPeriodsKept] = ms;
    }
    ++count_;
  }
  double mean() const { return count_ == 0 ? 0 : sum_ms_ / static_cast<double>(count_); }
  double p99() const {
    if (periods_.empty()) return 0;
    std::vector<double> sorted = periods_;
    const auto nth = sorted.begin() + static_cast<ptrdiff_t>((sorted.size() - 1) * 99 / 100);
    std::nth_element(sorted.begin(), nth, sorted.end());
    return *nth;
  }

 private:
  int64_t count_ = 0;
  double sum_ms_ = 0;
  std::vector<double> periods_;  // the newest ones
};

// Energy of the devices: from the driver's counters, else from power over time.
class EnergyMeter {
 public:
  void Add(const std::vector<DeviceReading>& readings, double seconds) {
    first_.resize(readings.size());
    for (size_t i = 0; i < readings.size(); ++i) {
      const DeviceReading& reading = readings[i];
      if (reading.energy_j) {
        if (!first_[i]) first_[i] = reading.energy_j;
        counted_.resize(readings.size());
        counted_[i] = *reading.energy_j - *first_[i];
      } else if (reading.power_w) {
        integrated_ = integrated_.value_or(0) + *reading.power_w * seconds;
      }
    }
  }
  std::optional<double> joules() const {
    if (counted_.empty()) return integrated_;
    double sum = integrated_.value_or(0);
    for (double joules : counted_) sum += joules;
    return sum;
  }

 private:
  std::vector<std::optional<double>> first_;
  std::vector<double> counted_;
  std::optional<double> integrated_;
};

class SamplerThread : public Sampler {
 public:
  SamplerThread(const SamplerOptions& options, std::unique_ptr<DeviceSource> source, Logs logs)
      : interval_(absl::ToChronoNanoseconds(options.interval)),
        logs_(std::move(logs)),
        host_({options.proc, options.sys}, options.process, options.cgroup),
        start_(Clock::now()) {
    if (source != nullptr) {
      devices_ = source->devices();
      device_source_ = source->name();
      poller_.emplace(std::move(source), start_, interval_);
    }
    WriteHeader(options);
    thread_ = std::thread([this] { Run(); });
  }

  ~SamplerThread() override { (void)Stop(); }

  absl::StatusOr<SamplerSummary> Stop() override {
    {
      std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    stopped_.notify_all();
    std::lock_guard lock(stop_mutex_);
    if (thread_.joinable()) {
      thread_.join();
      const std::string device_error = poller_ ? poller_->error() : "";
      poller_.reset();
      const SamplerSummary end = summary();
      Write(NativeFooter(end, device_error), SeedFooter(end));
    }
    if (!write_error_.ok()) return write_error_;
    return summary();
  }

  SamplerSummary summary() const override {
    std::lock_guard lock(mutex_);
    SamplerSummary summary;
    if (logs_.native) summary.files.push_back(logs_.native->path());
    if (logs_.seed) summary.files.push_back(logs_.seed->path());
    summary.device_source = device_source_;
    summary.num_devices = static_cast<int64_t>(devices_.size());
    summary.num_ticks = num_ticks_;
    summary.num_missed = num_missed_;
    summary.mean_period_ms = periods_.mean();
    summary.p99_period_ms = periods_.p99();
    summary.device_energy_j = device_energy_.joules();
    summary.host_energy_j = host_energy_j_;
    return summary;
  }

  const std::vector<SampledDevice>& devices() const override { return devices_; }

  std::optional<SampleTick> last_tick() const override {
    std::lock_guard lock(mutex_);
    return last_tick_;
  }

 private:
  void WriteHeader(const SamplerOptions& options) {
    const LogHeader header{HostName(),     options.tag, options.interval, absl::Now(),
                           device_source_, devices_,    host_.num_cpus()};
    Write(NativeHeader(header), SeedHeader(header));
  }

  // The first failure is kept: later lines may fit again, but the log has a hole.
  void Write(const std::string& native, const std::string& seed) {
    if (logs_.native) write_error_.Update(logs_.native->Write(native));
    if (logs_.seed) write_error_.Update(logs_.seed->Write(seed));
  }

  void Run() {
    TickSchedule schedule(start_, interval_);
    auto last = start_;
    while (true) {
      const auto deadline = schedule.Next(Clock::now());
      {
        std::unique_lock lock(mutex_);
        if (stopped_.wait_until(lock, deadline.at, [this] { return stopping_; })) break;
      }
      const auto now = Clock::now();
      Record(TakeTick(now, now - last, deadline), now - last, num_ticks_ > 0);
      last = now;
    }
    // What happened since the last deadline, unless that is too short to say anything.
    const auto now = Clock::now();
    if (now - last < interval_ / 10) return;
    Record(TakeTick(now, now - last, {now, 0}), now - last, false);
  }

  SampleTick TakeTick(Clock::time_point now, Clock::duration since_last,
                      const TickSchedule::Deadline& deadline) {
    using std::chrono::duration_cast;
    using std::chrono::microseconds;
    SampleTick tick;
    tick.wall_ns = Nanoseconds(CLOCK_REALTIME);
    tick.monotonic_ns = Nanoseconds(CLOCK_MONOTONIC);
    tick.delay_us = duration_cast<microseconds>(now - deadline.at).count();
    tick.missed = deadline.missed;
    tick.devices.resize(devices_.size());
    const auto values = poller_ ? poller_->newest() : std::nullopt;
    if (values) {
      tick.device_age_us = duration_cast<microseconds>(now - values->taken).count();
      if (now - values->taken <= kStaleAfterIntervals * interval_) tick.devices = values->readings;
    }
    tick.host = host_.Read(absl::FromChrono(since_last));
    return tick;
  }

  void Record(SampleTick tick, Clock::duration period, bool regular) {
    const double seconds = std::chrono::duration<double>(period).count();
    Write(NativeLine(tick), SeedLine(tick));
    std::lock_guard lock(mutex_);
    ++num_ticks_;
    num_missed_ += tick.missed;
    if (regular) periods_.Add(seconds * 1e3);
    device_energy_.Add(tick.devices, seconds);
    host_energy_j_ = host_.energy_j();
    last_tick_ = std::move(tick);
  }

  const Clock::duration interval_;
  const Logs logs_;
  HostReader host_;  // the sampling thread's
  const Clock::time_point start_;
  std::vector<SampledDevice> devices_;
  std::string device_source_ = "none";
  std::optional<DevicePoller> poller_;
  absl::Status write_error_;  // the sampling thread's until it is joined

  mutable std::mutex mutex_;  // guards what follows
  std::condition_variable stopped_;
  bool stopping_ = false;
  int64_t num_ticks_ = 0;
  int64_t num_missed_ = 0;
  PeriodStatistics periods_;
  EnergyMeter device_energy_;
  std::optional<double> host_energy_j_;
  std::optional<SampleTick> last_tick_;

  std::mutex stop_mutex_;  // one thread joins
  std::thread thread_;
};

}  // namespace

absl::StatusOr<LogFormat> ParseLogFormat(std::string_view name) {
  return FindName(kFormats, "format", name);
}

absl::StatusOr<DeviceBackend> ParseDeviceBackend(std::string_view name) {
  return FindName(kBackends, "device backend", name);
}

bool IsValidSampleTag(std::string_view tag) {
  constexpr size_t kMaxTagBytes = 100;
  return !tag.empty() && tag.size() <= kMaxTagBytes && tag[0] != '.' && tag[0] != '-' &&
         std::all_of(tag.begin(), tag.end(), [](unsigned char c) {
           return std::isalnum(c) != 0 || c == '.' || c == '_' || c == '-';
         });
}

fs::path SampleLogPath(const fs::path& folder, std::string_view tag, LogFormat format) {
  return folder / fmt::format("util-{}.{}", tag, format == LogFormat::kSeed ? "log" : "jsonl");
}

absl::StatusOr<std::unique_ptr<Sampler>> Sampler::Start(const SamplerOptions& options) {
  RETURN_IF_ERROR(CheckOptions(options));
  ASSIGN_OR_RETURN(auto source, OpenDeviceSource(options.devices, options.device_library));
  if (source == nullptr && options.format != LogFormat::kNative) {
    return absl::FailedPreconditionError(
        "the seed format has columns for accelerators only and none was found; use the native "
        "format for a host alone");
  }
  ASSIGN_OR_RETURN(Logs logs, OpenLogs(options));
  return std::make_unique<SamplerThread>(options, std::move(source), std::move(logs));
}

}  // namespace fulgur::bench

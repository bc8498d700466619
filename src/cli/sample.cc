// `fulgur sample`: utilisation of accelerators and host, here or on another machine.
#include <curl/curl.h>

#include <algorithm>
#include <fstream>
#include <functional>
#include <iostream>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/time/clock.h"
#include "base/status_macros.h"
#include "bench/sample/clock_offset.h"
#include "bench/sample/pid_file.h"
#include "bench/sample/sample_service.h"
#include "bench/sample/sampler.h"
#include "cli/flag_help.h"
#include "cli/flag_parser.h"
#include "cli/http_client.h"
#include "cli/shutdown_signal.h"
#include "cli/subcommands.h"
#include "cli/words.h"
#include "fmt/format.h"

namespace fulgur::cli {
namespace {

namespace fs = std::filesystem;

constexpr FlagSpec kFlags[] = {
    {.name = "interval",
     .default_value = "1s",
     .help = {"time between two samples: 1s, 500ms, or a number of seconds",
              "两次采样的间隔：1s、500ms，或秒数"}},
    {.name = "format",
     .default_value = "native",
     .help = {"native: util-TAG.jsonl; seed: util-TAG.log, columns of numbers; both",
              "native：util-TAG.jsonl；seed：util-TAG.log，数字列；both：两者"},
     .choices = "native|seed|both"},
    {.name = "folder",
     .default_value = ".",
     .help = {"folder of logs and pid files", "日志与 pid 文件的目录"}},
    {.name = "devices",
     .default_value = "auto",
     .help = {"where accelerators are read; auto takes the first that works, or none",
              "加速器数据的来源；auto 取第一个可用的，没有则不取"},
     .choices = "auto|none|dcmi|npu-smi-watch|npu-smi|nvml|nvidia-smi"},
    {.name = "device-library",
     .help = {"path of libdcmi.so or libnvidia-ml.so.1, if in no usual place",
              "libdcmi.so 或 libnvidia-ml.so.1 的路径（不在常规位置时）"}},
    {.name = "append",
     .type = FlagType::kBool,
     .help = {"go on in an existing log; otherwise one is an error",
              "在已有日志后继续写；否则日志已存在即报错"}},
    {.name = "pid",
     .type = FlagType::kInt,
     .help = {"also watch this process and its children", "同时观察该进程及其子进程"},
     .range = {.min = 1, .max = 1 << 22}},
    {.name = "cgroup",
     .help = {"also watch this control group (default: the own one)",
              "同时观察该控制组（默认：自身所在组）"}},
    {.name = "duration",
     .help = {"stop after this time, such as 10m (default: on Ctrl-C or --stop)",
              "经过该时间后停止，如 10m（默认：Ctrl-C 或 --stop）"}},
    {.name = "stop",
     .help = {"stop the sampler with this tag in the folder", "停止目录中该标签的采样器"}},
    {.name = "serve",
     .help = {"HOST:PORT or :PORT; be started, stopped and read over HTTP",
              "HOST:PORT 或 :PORT；通过 HTTP 启停和读取"}},
    {.name = "remote",
     .help = {"URL of such a server; then: start TAG, stop, status, clock or fetch TAG",
              "此类服务器的 URL；其后为 start TAG、stop、status、clock 或 fetch TAG"}},
    {.name = "api-key",
     .help = {"key that --serve asks for and --remote sends", "--serve 要求、--remote 发送的密钥"}},
};

constexpr std::string_view kUsage =
    "sample TAG [flags] | --stop TAG | --serve HOST:PORT | --remote URL ACTION [TAG]";

const FlagTable& SampleFlagTable() {
  static const FlagTable table({{"sample", {"Flags", "参数"}, kFlags}});
  return table;
}

// A mistake in the command, as opposed to what fails later.
absl::Status Mistake(const std::string& sentence) { return absl::InvalidArgumentError(sentence); }

int Fail(const absl::Status& error) { return ReportFailure("sample", error); }

absl::StatusOr<absl::Duration> ParseTime(const std::string& flag, const std::string& text) {
  absl::Duration duration;
  double seconds = 0;
  if (absl::SimpleAtod(text, &seconds)) {
    duration = absl::Seconds(seconds);
  } else if (!absl::ParseDuration(text, &duration)) {
    return Mistake(
        fmt::format("--{} '{}' is no time; write 1s, 500ms or a number of seconds", flag, text));
  }
  if (duration <= absl::ZeroDuration()) {
    return Mistake(fmt::format("--{} '{}' must be above 0", flag, text));
  }
  return duration;
}

absl::StatusOr<bench::SamplerOptions> OptionsOf(const FlagValues& values) {
  bench::SamplerOptions options;
  ASSIGN_OR_RETURN(options.interval, ParseTime("interval", values.String("interval")));
  ASSIGN_OR_RETURN(options.format, bench::ParseLogFormat(values.String("format")));
  ASSIGN_OR_RETURN(options.devices, bench::ParseDeviceBackend(values.String("devices")));
  options.folder = values.String("folder");
  options.device_library = values.String("device-library");
  options.append = values.Bool("append");
  options.cgroup = values.String("cgroup");
  if (values.Given("pid")) options.process = static_cast<pid_t>(values.Int("pid"));
  return options;
}

void PrintSummary(const bench::SamplerSummary& summary) {
  std::cout << fmt::format("{} ticks, {} missed, period {:.3f} ms on average, {:.3f} ms at p99\n",
                           summary.num_ticks, summary.num_missed, summary.mean_period_ms,
                           summary.p99_period_ms);
  if (summary.device_energy_j) {
    std::cout << fmt::format("accelerators: {:.0f} J\n", *summary.device_energy_j);
  }
  if (summary.host_energy_j) {
    std::cout << fmt::format("CPU packages: {:.0f} J\n", *summary.host_energy_j);
  }
  std::cout << std::flush;
}

// Until a signal comes or the time is over, in steps that every clock can count.
void WaitForEnd(ShutdownSignal& signal, absl::Duration duration) {
  const absl::Time end = absl::Now() + duration;
  while (absl::Now() < end && !signal.WaitFor(std::min(end - absl::Now(), absl::Hours(1)))) {
  }
}

int RunHere(const FlagValues& values, bench::SamplerOptions options, absl::Duration duration) {
  ShutdownSignal signal;
  signal.Arm();
  const auto pid_file = bench::PidFile::Create(bench::SamplePidPath(options.folder, options.tag));
  if (!pid_file.ok()) return Fail(pid_file.status());
  const auto sampler = bench::Sampler::Start(options);
  if (!sampler.ok()) return Fail(sampler.status());
  const bench::SamplerSummary start = (*sampler)->summary();
  for (const fs::path& file : start.files) std::cout << "writing " << file.string() << "\n";
  std::cout << fmt::format("{} devices from {}; `fulgur sample --stop {} --folder {}` ends it",
                           start.num_devices, start.device_source, options.tag,
                           values.String("folder"))
            << std::endl;
  WaitForEnd(signal, duration);
  const auto summary = (*sampler)->Stop();
  if (!summary.ok()) return Fail(summary.status());
  PrintSummary(*summary);
  return 0;
}

int RunStop(const FlagValues& values) {
  const std::string tag = values.String("stop");
  const auto stopped =
      bench::StopProcessOf(bench::SamplePidPath(values.String("folder"), tag), absl::Seconds(60));
  if (!stopped.ok()) return Fail(stopped.status());
  std::cout << fmt::format("stopped '{}', process {}", tag, *stopped) << std::endl;
  return 0;
}

absl::StatusOr<bench::SampleServiceOptions> ServiceOptionsOf(const FlagValues& values,
                                                             bench::SamplerOptions sampler) {
  const std::string address = values.String("serve");
  const size_t colon = address.rfind(':');
  const auto port =
      ParseWhole<int>(std::string_view(address).substr(colon == std::string::npos ? 0 : colon + 1));
  if (!port || *port < 0 || *port > 65535) {
    return Mistake(fmt::format("--serve '{}' must be HOST:PORT, :PORT or a port", address));
  }
  bench::SampleServiceOptions options;
  options.host = colon == std::string::npos ? "" : address.substr(0, colon);
  if (options.host.starts_with('[') && options.host.ends_with(']')) {
    options.host = options.host.substr(1, options.host.size() - 2);  // IPv6
  }
  options.port = *port;
  options.api_key = values.String("api-key");
  options.sampler = std::move(sampler);
  return options;
}

int RunService(bench::SampleServiceOptions options) {
  ShutdownSignal signal;
  signal.Arm();
  const auto service = bench::SampleService::Start(std::move(options));
  if (!service.ok()) return Fail(service.status());
  std::cout << fmt::format("sampler listens on port {}", (*service)->port()) << std::endl;
  WaitForEnd(signal, absl::InfiniteDuration());
  (*service)->Stop();
  return 0;
}

// The other end of RunService.
class RemoteSampler {
 public:
  RemoteSampler(const FlagValues& values, std::string tag)
      : values_(values),
        tag_(std::move(tag)),
        http_(values.String("remote"), values.String("api-key")) {}

  absl::StatusOr<std::string> Start() {
    ASSIGN_OR_RETURN(const auto interval, ParseTime("interval", values_.String("interval")));
    nlohmann::json body = {{"tag", tag_}, {"interval_ms", absl::ToInt64Milliseconds(interval)}};
    for (const char* name : {"format", "devices"}) {
      if (values_.Given(name)) body[name] = values_.String(name);
    }
    if (values_.Given("pid")) body["process"] = values_.Int("pid");
    return Body(http_.PostJson("/start", body.dump(), nullptr, nullptr));
  }

  absl::StatusOr<std::string> Stop() { return Body(http_.PostJson("/stop", "", nullptr, nullptr)); }
  absl::StatusOr<std::string> Status() { return Body(http_.Get("/status")); }

  absl::StatusOr<std::string> Clock() {
    ASSIGN_OR_RETURN(const auto offset, Offset());
    return fmt::format("offset {:.3f} ms, uncertainty {:.3f} ms",
                       static_cast<double>(offset.offset_ns) / 1e6,
                       static_cast<double>(offset.uncertainty_ns) / 1e6);
  }

  // Writes the log into the folder, with the offset of the clocks in its first line.
  absl::StatusOr<std::string> Fetch() {
    ASSIGN_OR_RETURN(const auto format, bench::ParseLogFormat(values_.String("format")));
    if (format == bench::LogFormat::kBoth) return Mistake("fetch one --format at a time");
    ASSIGN_OR_RETURN(const auto offset, Offset());
    ASSIGN_OR_RETURN(
        const std::string log,
        Body(http_.Get(fmt::format("/log?tag={}&format={}", tag_, values_.String("format")))));
    const fs::path path = bench::SampleLogPath(values_.String("folder"), tag_, format);
    std::error_code ignored;
    fs::create_directories(path.parent_path(), ignored);
    std::ofstream file(path, std::ios::binary | std::ios::trunc);
    file << bench::WithClockOffset(log, offset) << std::flush;
    if (!file) return absl::PermissionDeniedError("cannot write " + path.string());
    return fmt::format("wrote {} ({} bytes)", path.string(), log.size());
  }

 private:
  static absl::StatusOr<std::string> Body(absl::StatusOr<HttpAnswer> answer) {
    RETURN_IF_ERROR(answer.status());
    if (answer->status == 200) return std::move(answer->body);
    const auto json = nlohmann::json::parse(answer->body, nullptr, false);
    const bool has_message = json.is_object() && json.contains("error") &&
                             json["error"].is_object() && json["error"].contains("message");
    return absl::UnavailableError(
        fmt::format("the sampler answers {}: {}", answer->status,
                    has_message ? json["error"]["message"].dump() : answer->body));
  }

  absl::StatusOr<bench::ClockOffset> Offset() {
    const auto ask = [this]() -> absl::StatusOr<int64_t> {
      ASSIGN_OR_RETURN(const std::string body, Body(http_.Get("/time")));
      const auto json = nlohmann::json::parse(body, nullptr, false);
      if (!json.is_object() || !json.contains("wall_ns")) {
        return absl::UnavailableError("the answer of /time has no wall_ns");
      }
      return json["wall_ns"].get<int64_t>();
    };
    (void)http_.Get("/health");  // opens the connection, which is no part of a round trip
    return bench::MeasureClockOffset(ask, [] { return absl::GetCurrentTimeNanos(); });
  }

  const FlagValues& values_;
  const std::string tag_;
  HttpClient http_;
};

int RunRemote(const Invocation& invocation, const FlagValues& values,
              const std::vector<std::string>& words) {
  const std::string action = words.empty() ? "" : words[0];
  const bool needs_tag = action == "start" || action == "fetch";
  if (words.size() != (needs_tag ? 2U : 1U)) {
    return ReportMistake(invocation, std::string(kUsage),
                         "--remote needs an action: start TAG, stop, status, clock or fetch TAG");
  }
  if (needs_tag && !bench::IsValidSampleTag(words[1])) {
    return ReportMistake(invocation, std::string(kUsage),
                         fmt::format("'{}' is no tag: letters, digits, '.', '_', '-'", words[1]));
  }
  curl_global_init(CURL_GLOBAL_DEFAULT);
  RemoteSampler remote(values, needs_tag ? words[1] : "");
  absl::StatusOr<std::string> text = Mistake(fmt::format("unknown action '{}'", action));
  if (action == "start") text = remote.Start();
  if (action == "stop") text = remote.Stop();
  if (action == "status") text = remote.Status();
  if (action == "clock") text = remote.Clock();
  if (action == "fetch") text = remote.Fetch();
  if (absl::IsInvalidArgument(text.status())) {
    return ReportMistake(invocation, std::string(kUsage), Message(text.status()));
  }
  if (!text.ok()) return Fail(text.status());
  std::cout << *text << std::endl;
  return 0;
}

void PrintHelp(const Invocation& invocation) {
  std::cout << "usage: " << invocation.program << " " << kUsage
            << "\n\nSamples accelerators (Ascend: DCMI or npu-smi; NVIDIA: NVML or nvidia-smi), "
               "CPU, memory,\nnetwork and energy at fixed ticks into a log.\n\n"
            << HelpForUsedFlags(SampleFlagTable());
}

// The seed's script took the interval as a second word: `sample TAG 2`.
absl::Status ReadPositionals(const std::vector<std::string>& words,
                             bench::SamplerOptions& options) {
  if (words.empty() || words.size() > 2) return Mistake("name the log: sample TAG");
  options.tag = words[0];
  if (!bench::IsValidSampleTag(options.tag)) {
    return Mistake(fmt::format("'{}' is no tag: letters, digits, '.', '_', '-'", options.tag));
  }
  if (words.size() == 2) {
    ASSIGN_OR_RETURN(options.interval, ParseTime("interval", words[1]));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::function<int()>> Prepare(const Invocation& invocation,
                                             const ParsedCommand& command) {
  const FlagValues& values = command.values;
  const auto& words = command.positionals;
  if (values.Given("stop") + values.Given("serve") + values.Given("remote") > 1) {
    return Mistake("--stop, --serve and --remote exclude each other");
  }
  if (values.Given("remote")) return [&] { return RunRemote(invocation, values, words); };
  ASSIGN_OR_RETURN(bench::SamplerOptions options, OptionsOf(values));
  if (values.Given("stop") || values.Given("serve")) {
    if (!words.empty()) return Mistake(fmt::format("unexpected argument '{}'", words[0]));
    if (values.Given("stop")) return [&] { return RunStop(values); };
    ASSIGN_OR_RETURN(const auto service, ServiceOptionsOf(values, options));
    return [service] { return RunService(service); };
  }
  RETURN_IF_ERROR(ReadPositionals(words, options));
  absl::Duration duration = absl::InfiniteDuration();
  if (values.Given("duration")) {
    ASSIGN_OR_RETURN(duration, ParseTime("duration", values.String("duration")));
  }
  return [&values, options, duration] { return RunHere(values, options, duration); };
}

}  // namespace

int RunSample(const Invocation& invocation) {
  for (const std::string& arg : invocation.args) {
    if (arg != "--help" && arg != "-h") continue;
    PrintHelp(invocation);
    return 0;
  }
  const auto command = ParseCommand(SampleFlagTable(), invocation.args);
  if (!command.ok()) {
    return ReportMistake(invocation, std::string(kUsage), Message(command.status()));
  }
  const auto run = Prepare(invocation, *command);
  if (!run.ok()) return ReportMistake(invocation, std::string(kUsage), Message(run.status()));
  return (*run)();
}

}  // namespace fulgur::cli

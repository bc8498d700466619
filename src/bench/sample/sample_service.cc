#include "bench/sample/sample_service.h"

#include <time.h>

#include <filesystem>
#include <functional>
#include <optional>
#include <utility>

#include "base/status_macros.h"
#include "bench/sample/text_scan.h"
#include "fmt/format.h"
#include "nlohmann/json.hpp"
#include "server/api_error.h"
#include "server/http.h"
#include "server/metrics.h"
#include "server/router.h"
#include "server/worker_pool.h"

namespace fulgur::bench {
namespace {

using Json = nlohmann::ordered_json;
using server::HttpResponse;

constexpr int64_t kMaxBodyBytes = 64 << 10;

int64_t Nanoseconds(clockid_t clock) {
  timespec time{};
  clock_gettime(clock, &time);
  return int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

HttpResponse JsonResponse(const Json& json) {
  return {200, {{"Content-Type", "application/json"}}, json.dump()};
}

HttpResponse ErrorResponse(const absl::Status& error) {
  int status = 500;
  if (absl::IsInvalidArgument(error) || absl::IsFailedPrecondition(error)) status = 400;
  if (absl::IsNotFound(error)) status = 404;
  if (absl::IsAlreadyExists(error)) status = 409;
  return server::PlainErrorResponse(status, std::string(error.message()));
}

HttpResponse ResponseOf(const absl::StatusOr<HttpResponse>& response) {
  return response.ok() ? *response : ErrorResponse(response.status());
}

// A field of a request; an error if it has another type.
template <typename T>
absl::Status ReadField(const Json& body, const char* name, std::optional<T>& value) {
  const auto found = body.find(name);
  if (found == body.end() || found->is_null()) return absl::OkStatus();
  const bool fits =
      std::is_same_v<T, std::string> ? found->is_string() : found->is_number_integer();
  if (!fits) {
    return absl::InvalidArgumentError(
        fmt::format("'{}' must be {}, not {}", name,
                    std::is_same_v<T, std::string> ? "a text" : "a whole number", found->dump()));
  }
  value = found->template get<T>();
  return absl::OkStatus();
}

absl::StatusOr<SamplerOptions> OptionsOf(const std::string& body, SamplerOptions options) {
  const Json json = Json::parse(body, nullptr, false);
  if (!json.is_object()) {
    return absl::InvalidArgumentError(R"(the body must be a JSON object such as {"tag": "run1"})");
  }
  for (const auto& [name, value] : json.items()) {
    if (name == "tag" || name == "interval_ms" || name == "format" || name == "devices" ||
        name == "process") {
      continue;
    }
    return absl::InvalidArgumentError(fmt::format("unknown field '{}'", name));
  }
  std::optional<std::string> tag, format, devices;
  std::optional<int64_t> interval_ms, process;
  RETURN_IF_ERROR(ReadField(json, "tag", tag));
  RETURN_IF_ERROR(ReadField(json, "format", format));
  RETURN_IF_ERROR(ReadField(json, "devices", devices));
  RETURN_IF_ERROR(ReadField(json, "interval_ms", interval_ms));
  RETURN_IF_ERROR(ReadField(json, "process", process));
  if (!tag) return absl::InvalidArgumentError("'tag' is missing");
  options.tag = *tag;
  if (interval_ms) options.interval = absl::Milliseconds(*interval_ms);
  if (process) options.process = static_cast<pid_t>(*process);
  if (format) {
    ASSIGN_OR_RETURN(options.format, ParseLogFormat(*format));
  }
  if (devices) {
    ASSIGN_OR_RETURN(options.devices, ParseDeviceBackend(*devices));
  }
  return options;
}

std::string QueryValue(std::string_view query, std::string_view name) {
  for (std::string_view part : SplitSkipEmpty(query, "&")) {
    const size_t equals = part.find('=');
    if (equals != std::string_view::npos && part.substr(0, equals) == name) {
      return std::string(part.substr(equals + 1));
    }
  }
  return "";
}

// No web page of another site may start or stop a sampler.
server::ServerOptions ServerOptionsOf(const std::string& api_key) {
  server::ServerOptions options;
  if (!api_key.empty()) options.api_keys = {api_key};
  options.cors.allowed_origins.clear();
  return options;
}

class HttpSampleService : public SampleService {
 public:
  explicit HttpSampleService(SampleServiceOptions options)
      : options_(std::move(options)),
        server_options_(ServerOptionsOf(options_.api_key)),
        metrics_("fulgur-sample", 1, {}),
        router_(server_options_, metrics_) {}

  ~HttpSampleService() override { HttpSampleService::Stop(); }

  absl::Status Listen() {
    server::ListenOptions listen;
    listen.host = options_.host;
    listen.port = options_.port;
    listen.max_body_bytes = kMaxBodyBytes;
    ASSIGN_OR_RETURN(http_, server::HttpServer::Create(listen, &router_));
    http_->Run();
    return absl::OkStatus();
  }

  int port() const override { return http_->port(); }

  void Stop() override {
    if (http_ == nullptr) return;
    http_->Stop();
    workers_.Stop();
    if (sampler_ != nullptr) (void)sampler_->Stop();
  }

  // Before Listen().
  void AddRoutes() {
    router_.Add("GET", "/health", [](const server::Call& call) { call.response->Send({}); });
    // The clock is read here, on the network thread: a queue would add to the round trip.
    router_.Add(
        "GET", "/time",
        [](const server::Call& call) {
          call.response->Send(JsonResponse({{"wall_ns", Nanoseconds(CLOCK_REALTIME)},
                                            {"monotonic_ns", Nanoseconds(CLOCK_MONOTONIC)}}));
        },
        true);
    AddOffloaded("POST", "/start", [this](const auto& request) { return StartSampler(request); });
    AddOffloaded("POST", "/stop", [this](const auto&) { return StopSampler(); });
    AddOffloaded("GET", "/status", [this](const auto&) { return JsonResponse(Status()); });
    AddOffloaded("GET", "/log", [this](const auto& request) { return SendLog(request); });
  }

 private:
  using Work = std::function<absl::StatusOr<HttpResponse>(const server::HttpRequest&)>;

  // One worker does all that may take time: opening drivers, waiting for threads, reading files.
  void AddOffloaded(std::string method, std::string path, Work work) {
    const auto endpoint = [this, work = std::move(work)](server::Call call) {
      workers_.Run([this, work, request = std::move(call.request), response = call.response] {
        HttpResponse answer = ResponseOf(work(request));
        http_->Post([response, answer = std::move(answer)] { response->Send(answer); });
      });
    };
    router_.Add(std::move(method), std::move(path), endpoint, true);
  }

  absl::StatusOr<HttpResponse> StartSampler(const server::HttpRequest& request) {
    if (running_) {
      return absl::AlreadyExistsError(fmt::format("'{}' is being sampled; stop it first", tag_));
    }
    ASSIGN_OR_RETURN(const SamplerOptions options, OptionsOf(request.body, options_.sampler));
    tag_ = options.tag;
    ASSIGN_OR_RETURN(sampler_, Sampler::Start(options));
    running_ = true;
    return JsonResponse(Status());
  }

  absl::StatusOr<HttpResponse> StopSampler() {
    if (!running_) return absl::NotFoundError("nothing is being sampled");
    running_ = false;
    RETURN_IF_ERROR(sampler_->Stop().status());
    return JsonResponse(Status());
  }

  Json Status() const {
    Json json = {{"running", running_}, {"tag", tag_}};
    if (sampler_ == nullptr) return json;
    const SamplerSummary summary = sampler_->summary();
    json["ticks"] = summary.num_ticks;
    json["missed"] = summary.num_missed;
    json["period_mean_ms"] = summary.mean_period_ms;
    json["period_p99_ms"] = summary.p99_period_ms;
    json["device_source"] = summary.device_source;
    json["devices"] = summary.num_devices;
    json["files"] = Json::array();
    for (const auto& file : summary.files) json["files"].push_back(file.string());
    return json;
  }

  absl::StatusOr<HttpResponse> SendLog(const server::HttpRequest& request) const {
    const std::string tag = QueryValue(request.query, "tag");
    const std::string name = QueryValue(request.query, "format");
    if (!IsValidSampleTag(tag)) {
      return absl::InvalidArgumentError("name a log, as in /log?tag=run1");
    }
    ASSIGN_OR_RETURN(const LogFormat format, ParseLogFormat(name.empty() ? "native" : name));
    if (format == LogFormat::kBoth) {
      return absl::InvalidArgumentError("fetch one format at a time: native or seed");
    }
    const auto path = SampleLogPath(options_.sampler.folder, tag, format);
    std::error_code error;
    if (!std::filesystem::is_regular_file(path, error)) {
      return absl::NotFoundError(fmt::format("there is no {}", path.filename().string()));
    }
    return HttpResponse{
        200,
        {{"Content-Type", format == LogFormat::kNative ? "application/x-ndjson" : "text/plain"}},
        FileText(path)};
  }

  const SampleServiceOptions options_;
  const server::ServerOptions server_options_;
  server::Metrics metrics_;
  server::Router router_;
  std::unique_ptr<server::HttpServer> http_;

  // The worker's.
  std::unique_ptr<Sampler> sampler_;
  bool running_ = false;
  std::string tag_;
  server::WorkerPool workers_{1};
};

}  // namespace

absl::StatusOr<std::unique_ptr<SampleService>> SampleService::Start(SampleServiceOptions options) {
  auto service = std::make_unique<HttpSampleService>(std::move(options));
  service->AddRoutes();
  RETURN_IF_ERROR(service->Listen());
  return service;
}

}  // namespace fulgur::bench

#include "bench/load/vllm_result.h"

#include <algorithm>
#include <ctime>
#include <filesystem>
#include <fstream>

#include "fmt/format.h"
#include "nlohmann/json.hpp"

namespace fulgur::bench {
namespace {

using Json = nlohmann::ordered_json;
namespace fs = std::filesystem;

std::string Now() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  localtime_r(&now, &parts);
  char text[32];
  std::strftime(text, sizeof text, "%Y%m%d-%H%M%S", &parts);
  return text;
}

std::string BaseName(const std::string& model) { return model.substr(model.rfind('/') + 1); }

Json Average(const MetricMap& metrics, const char* tag) {
  const auto found = metrics.find(tag);
  if (found == metrics.end() || !found->second.avg) return nullptr;
  return *found->second.avg;
}

void AddStatistics(const MetricMap& metrics, const char* tag, const std::string& name, Json& json) {
  const auto found = metrics.find(tag);
  if (found == metrics.end() || !found->second.avg) return;
  const MetricBlock& block = found->second;
  json[fmt::format("mean_{}_ms", name)] = *block.avg;
  json[fmt::format("median_{}_ms", name)] = block.percentiles.at(50);
  json[fmt::format("std_{}_ms", name)] = block.std.value_or(0.0);
  json[fmt::format("p99_{}_ms", name)] = block.percentiles.at(99);
}

void AddDetails(const std::vector<VllmLine>& lines, Json& json) {
  Json inputs = Json::array(), outputs = Json::array(), ttfts = Json::array(), gaps = Json::array(),
       latencies = Json::array(), starts = Json::array(), errors = Json::array();
  for (const VllmLine& line : lines) {
    inputs.push_back(line.input_tokens);
    outputs.push_back(line.output_tokens);
    ttfts.push_back(line.ttft_s);
    gaps.push_back(line.gaps_s);
    latencies.push_back(line.latency_s);
    starts.push_back(line.start_s);
    errors.push_back(line.error);
  }
  json["input_lens"] = std::move(inputs);
  json["output_lens"] = std::move(outputs);
  json["ttfts"] = std::move(ttfts);
  json["itls"] = std::move(gaps);
  json["latencies"] = std::move(latencies);
  json["start_times"] = std::move(starts);
  json["errors"] = std::move(errors);
}

const PlannedPhase& Profiling(const RunPlan& plan) { return plan.phases.back(); }

Json MakeJson(const VllmResultOptions& file, const RunOptions& options, const CellResult& result,
              const std::string& date) {
  const MetricMap& metrics = result.cell.metrics;
  const PlannedPhase& phase = Profiling(result.plan);
  Json json{
      {"date", date},
      {"endpoint_type", file.backend},
      {"backend", file.backend},
      {"label", file.label.empty() ? Json() : Json(file.label)},
      {"model_id", result.plan.models.front()},
      {"tokenizer_id", options.tokenizer.empty() ? result.plan.models.front() : options.tokenizer},
      {"num_prompts", phase.requests ? Json(*phase.requests) : Json()}};
  for (const std::string& entry : file.metadata) {
    const size_t equals = entry.find('=');
    if (equals != std::string::npos) json[entry.substr(0, equals)] = entry.substr(equals + 1);
  }
  json["request_rate"] = phase.rate ? Json(*phase.rate) : Json("inf");
  json["burstiness"] = options.scenarios.front().arrivals.burstiness;
  json["max_concurrency"] = phase.concurrency ? Json(*phase.concurrency) : Json();
  double window_s = 0.0;
  for (const PhaseWindow& window : result.cell.phases) {
    if (window.name != "profiling") continue;
    window_s = static_cast<double>(window.wall_end_ns - window.wall_start_ns) / 1e9;
  }
  json["duration"] = window_s;
  json["completed"] = result.valid_requests;
  json["failed"] = result.failed_requests;
  json["total_input_tokens"] = Average(metrics, "total_isl");
  json["total_output_tokens"] = Average(metrics, "total_osl");
  json["request_throughput"] = Average(metrics, "request_throughput");
  json["request_goodput"] = Average(metrics, "goodput");
  json["output_throughput"] = Average(metrics, "output_token_throughput");
  json["total_token_throughput"] = Average(metrics, "total_token_throughput");
  if (file.detailed) AddDetails(result.lines, json);
  AddStatistics(metrics, "time_to_first_token", "ttft", json);
  AddStatistics(metrics, "inter_token_latency", "tpot", json);
  AddStatistics(metrics, "inter_chunk_latency", "itl", json);
  AddStatistics(metrics, "request_latency", "e2el", json);
  return json;
}

}  // namespace

absl::Status WriteVllmResult(const VllmResultOptions& file, const RunOptions& options,
                             const CellResult& result) {
  const std::string date = Now();
  const PlannedPhase& phase = Profiling(result.plan);
  std::string name = file.name;
  if (name.empty()) {
    name = fmt::format("{}-{}qps{}-{}-{}.json", file.label.empty() ? file.backend : file.label,
                       phase.rate ? fmt::format("{}", *phase.rate) : "inf",
                       phase.concurrency ? fmt::format("-concurrency{}", *phase.concurrency) : "",
                       BaseName(result.plan.models.front()), date);
  }
  std::error_code ignored;
  fs::create_directories(file.folder, ignored);
  const fs::path path = fs::path(file.folder) / name;
  std::ofstream stream(path, std::ios::binary);
  stream
      << MakeJson(file, options, result, date).dump(-1, ' ', false, Json::error_handler_t::replace);
  if (stream.flush()) return absl::OkStatus();
  return absl::PermissionDeniedError(
      fmt::format("--result-dir: {} cannot be written", path.string()));
}

}  // namespace fulgur::bench

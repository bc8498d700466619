#include "bench/results/inferencex_reader.h"

#include <string>

#include "bench/results/derive.h"
#include "bench/results/scenarios.h"
#include "fmt/format.h"

namespace fulgur::bench {
namespace {

constexpr double kMsPerSecond = 1000.0;

struct Family {
  const char* suffix;
  const char* tag;
};

// Its inter-token latency is a gap between messages, as in vLLM's client that it runs.
constexpr Family kFamilies[] = {{"ttft", "time_to_first_token"},
                                {"tpot", "inter_token_latency"},
                                {"itl", "inter_chunk_latency"},
                                {"e2el", "request_latency"}};

void ReadFamily(const JsonObject& root, const Family& family, MetricMap& metrics) {
  const auto at = [&](const std::string& statistic) -> std::optional<double> {
    const auto seconds = NumberAt(root, fmt::format("{}_{}", statistic, family.suffix));
    return seconds ? std::optional(*seconds * kMsPerSecond) : std::nullopt;
  };
  MetricBlock block;
  block.unit = "ms";
  block.avg = at("mean");
  block.std = at("std");
  if (const auto median = at("median")) block.percentiles[50] = *median;
  for (const int q : kPercentiles) {
    if (const auto value = at(fmt::format("p{}", q))) block.percentiles[q] = *value;
  }
  if (block.avg || !block.percentiles.empty()) metrics[family.tag] = std::move(block);
}

void ReadRates(const JsonObject& root, MetricMap& metrics) {
  const bool disaggregated = BoolAt(root, "disagg").value_or(false);
  const auto gpus = IntegerAt(root, disaggregated ? "num_decode_gpu" : "tp");
  const auto output = NumberAt(root, "output_tput_per_gpu");
  if (output) metrics["fulgur_output_tokens_per_device"] = Scalar(*output, "tokens/sec");
  if (!output || !gpus || *gpus < 1) return;
  metrics["output_token_throughput"] = Scalar(*output * static_cast<double>(*gpus), "tokens/sec");
}

// The mean of its interactivity is one over the mean latency, so only its median is a rate of
// requests.
void ReadInteractivity(const JsonObject& root, Result& result) {
  MarkHarmonicRate(result);
  const auto median = NumberAt(root, "median_intvty");
  auto& metrics = result.cell.metrics;
  const auto rate = metrics.find("output_token_throughput_per_user");
  if (median && rate != metrics.end()) rate->second.percentiles[50] = *median;
}

void SetEnvironment(const JsonObject& root, Cell& cell) {
  const std::pair<const char*, const char*> kFields[] = {{"model", "model"},
                                                         {"hardware", "hw"},
                                                         {"engine", "framework"},
                                                         {"precision", "precision"},
                                                         {"image", "image"}};
  for (const auto& [key, field] : kFields) {
    const std::string text = TextAt(root, field);
    if (!text.empty()) cell.environment[key] = text;
  }
  for (const char* field : {"tp", "ep"}) {
    if (const auto size = IntegerAt(root, field)) {
      cell.environment[field] = std::to_string(*size);
    }
  }
  cell.environment["load_tool"] = "InferenceX";
}

void SetPlan(const JsonObject& root, Result& result) {
  Cell& cell = result.cell;
  cell.concurrency = IntegerAt(root, "conc");
  PlannedPhase phase;
  phase.name = "profiling";
  phase.concurrency = cell.concurrency;
  result.plan.phases.push_back(phase);
  result.plan.models = {TextAt(root, "model")};
  const auto input = IntegerAt(root, "isl");
  const auto output = IntegerAt(root, "osl");
  if (!input || !output) return;
  result.plan.input_length = LengthSpec{static_cast<double>(*input), 0.0};
  result.plan.output_length = LengthSpec{static_cast<double>(*output), 0.0};
  cell.scenario = ScenarioByLengths(result);
  if (cell.scenario.empty()) cell.scenario = fmt::format("in{}out{}", *input, *output);
}

}  // namespace

bool IsInferenceX(const JsonObject& root) {
  return NumberAt(root, "tput_per_gpu") && NumberAt(root, "conc");
}

Result ReadInferenceX(const JsonObject& root, const std::filesystem::path& file) {
  Result result;
  Cell& cell = result.cell;
  cell.kind = ResultKind::kInferenceX;
  cell.source = file.string();
  SetEnvironment(root, cell);
  SetPlan(root, result);
  for (const Family& family : kFamilies) ReadFamily(root, family, cell.metrics);
  ReadRates(root, cell.metrics);
  ReadInteractivity(root, result);
  DeriveMetrics(result);
  return result;
}

}  // namespace fulgur::bench

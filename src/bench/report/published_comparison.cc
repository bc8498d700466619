#include "bench/report/published_comparison.h"

#include <cmath>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"

namespace fulgur::bench {
namespace {

using nlohmann::json;

MetricBlock Block(double avg, const char* unit) {
  MetricBlock block;
  block.unit = unit;
  block.avg = avg;
  return block;
}

Verdict ByThreshold(double speedup, double threshold) {
  if (speedup >= 1 + threshold) return Verdict::kImproved;
  return speedup <= 1 - threshold ? Verdict::kRegression : Verdict::kNeutral;
}

Contrast HeadlineContrast(const Comparison& comparison, const ScenarioFacts& scenario,
                          int64_t concurrency) {
  Contrast contrast;
  contrast.scenario = scenario.id;
  contrast.concurrency = concurrency;
  contrast.tag = kHeadlineTag;
  const auto value = [&](const std::string& system) {
    return Statistic(comparison.FindCell(system, scenario.id, concurrency), kHeadlineTag, "avg");
  };
  contrast.baseline = value(comparison.baseline);
  contrast.treatment = value(comparison.treatment);
  if (!contrast.baseline || !contrast.treatment) return contrast;
  contrast.speedup = *contrast.treatment / *contrast.baseline;
  contrast.delta_percent = (*contrast.speedup - 1) * 100;
  contrast.verdict = ByThreshold(*contrast.speedup, comparison.threshold);
  contrast.note = "no variance";
  return contrast;
}

void AddContrasts(Comparison& comparison) {
  double all = 0;
  int32_t all_cells = 0;
  for (const ScenarioFacts& scenario : comparison.scenarios) {
    double sum = 0;
    int32_t cells = 0;
    for (int64_t concurrency : comparison.concurrencies) {
      comparison.contrasts.push_back(HeadlineContrast(comparison, scenario, concurrency));
      if (!comparison.contrasts.back().speedup) continue;
      sum += std::log(*comparison.contrasts.back().speedup);
      ++cells;
    }
    all += sum;
    all_cells += cells;
    if (cells > 0) comparison.means.push_back({scenario.id, std::exp(sum / cells), cells});
  }
  if (all_cells > 0) comparison.means.push_back({"", std::exp(all / all_cells), all_cells});
}

void ReadCell(const json& told, const std::string& system, Comparison& comparison) {
  CellFacts cell;
  cell.system = system;
  cell.scenario = told["scenario"];
  cell.concurrency = told["concurrency"];
  const auto& rates = told["output_token_throughput_per_user"];
  cell.metrics[std::string(kHeadlineTag)] = Block(rates[system], "tokens/sec/user");
  if (told.contains("inter_token_latency") && told["inter_token_latency"].contains(system)) {
    cell.metrics["inter_token_latency"] = Block(told["inter_token_latency"][system], "ms");
  }
  if (told.contains("time_to_first_token") && told["time_to_first_token"].contains(system)) {
    const json& ttft = told["time_to_first_token"][system];
    MetricBlock block = Block(ttft["avg"], "ms");
    if (ttft.contains("p50")) block.percentiles[50] = ttft["p50"];
    if (ttft.contains("p99")) block.percentiles[99] = ttft["p99"];
    cell.metrics["time_to_first_token"] = block;
  }
  comparison.cells.push_back(cell);
}

UtilisationSummary ReadUtilisation(const json& told) {
  UtilisationSummary summary;
  summary.samples = told["samples"];
  summary.devices = 16;
  summary.busy_avg = told["aicore_avg_pct"];
  summary.busy_max = told["aicore_max_pct"];
  summary.device_memory_avg_mb = told["hbm_avg_mb"];
  summary.cpu_avg_percent = told["cpu_avg_pct"];
  summary.host_memory_used_mb = told["host_mem_gb"].get<double>() * 1024;
  return summary;
}

void ReadSystems(const json& told, Comparison& comparison) {
  for (const json& entry : told["systems"]) {
    SystemFacts system;
    system.id = entry["id"];
    system.label = entry["label_en"];
    if (system.id == comparison.baseline) system.role = Role::kBaseline;
    if (system.id == comparison.treatment) system.role = Role::kTreatment;
    system.environment["model"] = entry["model"];
    system.environment["engine"] = entry["engine"];
    if (!entry["speculative"].is_null()) {
      system.environment["speculative"] = entry["speculative"].dump();
    }
    if (system.role != Role::kReference) {
      system.devices = 16;
      system.environment["hardware"] = told["hardware"]["npu"];
      system.environment["block_size"] = std::to_string(told["topology"]["block_size"].get<int>());
      system.utilisation = ReadUtilisation(told["utilisation"][system.id]);
    } else {
      system.source = told["source"];
    }
    comparison.systems.push_back(system);
  }
}

// Values around a mean, as a block with all statistics.
MetricBlock Distribution(double mean, const char* unit) {
  std::vector<double> values;
  for (int i = 0; i < 120; ++i) {
    const double part = (i + 0.5) / 120;
    values.push_back(mean * (0.7 + 0.5 * part + 0.4 * std::pow(part, 12)));
  }
  return Summarize(values, unit);
}

constexpr int64_t kStartNs = 1'786'000'000'000'000'000;
constexpr int64_t kCellNs = 60'000'000'000;

CellFacts FullCell(const std::string& system, const std::string& scenario, int64_t concurrency,
                   int64_t order) {
  const bool treatment = system == "fast";
  const double load = std::log2(static_cast<double>(concurrency)) + 1;
  const double itl = treatment ? 12.0 + 7.0 * load : 30.0 + 1.5 * load;
  CellFacts cell;
  cell.system = system;
  cell.scenario = scenario;
  cell.concurrency = concurrency;
  cell.requests = 120;
  cell.errors = 0;
  cell.metrics["inter_token_latency"] = Distribution(itl, "ms");
  cell.metrics["output_token_throughput_per_user"] = Distribution(1000 / itl, "tokens/sec/user");
  cell.metrics["fulgur_per_user_token_weighted"] = Scalar(960 / itl, "tokens/sec/user");
  cell.metrics["time_to_first_token"] = Distribution(200 + 40 * load, "ms");
  cell.metrics["inter_chunk_latency"] = Distribution(treatment ? 3 * itl : itl, "ms");
  cell.metrics["request_latency"] = Distribution(200 + 40 * load + 255 * itl, "ms");
  cell.metrics["credit_to_start_latency"] = Distribution(2, "ms");
  cell.metrics["fulgur_tokens_per_chunk"] = Distribution(treatment ? 3.1 : 1.0, "tokens");
  const double rate = 850 / itl * static_cast<double>(concurrency);
  cell.metrics["output_token_throughput"] = Scalar(rate, "tokens/sec");
  cell.metrics["fulgur_output_token_throughput_over_duration"] = Scalar(rate * 1.01, "tokens/sec");
  if (treatment) {
    cell.metrics["spec_decode_acceptance_length"] = Scalar(3.4, "tokens");
    for (int i = 1; i <= 7; ++i) {
      cell.metrics[absl::StrCat("fulgur_acceptance_rate_position_", i)] =
          Scalar(std::pow(0.85, i), "ratio");
    }
  }
  cell.phases.push_back(
      {"profiling", kStartNs + order * kCellNs, kStartNs + order * kCellNs + kCellNs * 9 / 10});
  cell.repetitions = 3;
  cell.repetition_std[std::string(kHeadlineTag)] = 25 / itl;
  UtilisationSummary summary;
  summary.wall_start_ns = cell.phases[0].wall_start_ns;
  summary.wall_end_ns = cell.phases[0].wall_end_ns;
  summary.samples = 27;
  summary.busy_avg = treatment ? 60 : 80;
  summary.cpu_avg_percent = 7;
  summary.tokens_per_busy_device_second = rate / 16;
  cell.utilisation = summary;
  cell.provenance.push_back(
      {absl::StrCat(system, "/", scenario, "-c", concurrency, "/profile_export_aiperf.json"),
       "aiperf", "0.13.0", std::string(64, 'a')});
  return cell;
}

UtilisationSummary FullUtilisation(bool treatment) {
  UtilisationSummary summary;
  summary.wall_start_ns = kStartNs;
  summary.samples = 180;
  summary.devices = 16;
  summary.busy_avg = treatment ? 62 : 81;
  summary.cpu_avg_percent = 7;
  for (int i = 0; i < 180; ++i) {
    UtilisationPoint point;
    point.seconds = 2.0 * i;
    if (i < 90 || i > 100) {  // samples are missing in between
      const double wave = 10 * std::sin(i / 9.0);
      point.busy_mean = *summary.busy_avg + wave;
      point.busy_min_device = *point.busy_mean - 12;
      point.busy_max_device = std::min(100.0, *point.busy_mean + 9);
      point.cpu_percent = 7 + wave / 5;
    }
    summary.series.push_back(point);
  }
  return summary;
}

}  // namespace

Comparison PublishedComparison() {
  std::ifstream file("src/bench/report/testdata/published_results.json");
  const json told = json::parse(file);
  Comparison comparison;
  comparison.baseline = "baseline";
  comparison.treatment = "dspark";
  ReadSystems(told, comparison);
  for (const json& entry : told["scenarios"]) {
    comparison.scenarios.push_back(
        {entry["id"], {{"en", entry["label_en"]}, {"zh", entry["label_zh"]}}});
  }
  comparison.concurrencies = {1, 4, 8, 16};
  for (const json& entry : told["cells"]) {
    for (const SystemFacts& system : comparison.systems) ReadCell(entry, system.id, comparison);
  }
  AddContrasts(comparison);
  comparison.confounders.push_back({"engine", comparison.systems[0].environment["engine"],
                                    comparison.systems[1].environment["engine"]});
  for (const json& entry : told["trials"]) {
    Trial trial;
    trial.id = entry["id"];
    trial.change = entry["change"];
    if (entry.contains("delta_pct")) trial.delta_percent = entry["delta_pct"];
    if (entry.contains("errors")) trial.errors = entry["errors"];
    trial.decision = "rejected";
    comparison.trials.push_back(trial);
  }
  return comparison;
}

Comparison FullComparison() {
  Comparison comparison;
  comparison.baseline = "plain";
  comparison.treatment = "fast";
  for (const bool treatment : {false, true}) {
    SystemFacts system;
    system.id = treatment ? "fast" : "plain";
    system.label = treatment ? "Quick" : "Plain";
    system.role = treatment ? Role::kTreatment : Role::kBaseline;
    system.devices = 16;
    system.environment = {{"engine", treatment ? "vLLM 0.25.1" : "vLLM 0.22.1"},
                          {"model", "DeepSeek-V4-Flash"}};
    system.utilisation = FullUtilisation(treatment);
    comparison.systems.push_back(system);
  }
  comparison.scenarios = {{"chat", {{"en", "Chat (128,256)"}, {"zh", "对话 (128,256)"}}},
                          {"sum", {{"en", "Summarization (1024,128)"}, {"zh", "摘要 (1024,128)"}}}};
  comparison.concurrencies = {1, 4, 16};
  for (const SystemFacts& system : comparison.systems) {
    int64_t order = 0;
    for (const ScenarioFacts& scenario : comparison.scenarios) {
      for (int64_t concurrency : comparison.concurrencies) {
        comparison.cells.push_back(FullCell(system.id, scenario.id, concurrency, order++));
      }
    }
  }
  CellFacts& failing = comparison.cells.back();
  failing.errors = 3;
  failing.errors_by_code = {{"400", 2}, {"ClientPayloadError", 1}};
  failing.valid = false;
  failing.reasons = {"3 of 123 requests failed."};
  failing.lint.push_back({"L9", Severity::kFail, "3 of 123 requests failed (2.4 %)."});
  comparison.cells.front().lint.push_back(
      {"P14", Severity::kWarn, "The time to first token rises 1.5-fold within groups of 16."});
  AddContrasts(comparison);
  for (Contrast& contrast : comparison.contrasts) {
    contrast.note.clear();
    contrast.interval = Interval{*contrast.speedup * 0.93, *contrast.speedup * 1.06};
  }
  comparison.confounders.push_back({"engine", "vLLM 0.22.1", "vLLM 0.25.1"});
  comparison.problems.push_back("plain/sum-c8 holds no result: its file is empty");
  return comparison;
}

std::vector<CellRequests> FullRequests() {
  std::vector<CellRequests> cells;
  for (const char* system : {"plain", "fast"}) {
    CellRequests cell{system, "chat", 16, {}};
    for (int i = 0; i < 120; ++i) {
      RequestLine line;
      line.session = i;
      line.start_ns = kStartNs + (i / 16) * 4'000'000'000LL + (i % 16) * 10'000'000;
      line.scheduled_ns = line.start_ns - 3'000'000;
      line.metrics.values = {{"time_to_first_token", 300.0 + 20 * (i % 16)},
                             {"request_latency", 3600.0 + 15 * (i % 16)},
                             {"output_sequence_length", 256.0},
                             {"input_sequence_length", 100.0 + i}};
      cell.requests.push_back(line);
    }
    cells.push_back(cell);
  }
  return cells;
}

std::vector<AccuracyScore> FullAccuracy() {
  return {{"plain", "gsm8k", 96.3, 95.1, 97.2, 1319, 0, 2},
          {"fast", "gsm8k", 96.1, 94.9, 97.0, 1319, 1, 2},
          {"fast", "humaneval", 88.4, 82.6, 92.5, 164, 0, 0}};
}

}  // namespace fulgur::bench

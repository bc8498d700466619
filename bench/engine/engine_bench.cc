// Whole steps of a model through the real code: prompts, decoding at any context and number of
// sequences, the engine around them; beside each its share of the memory bandwidth of the same
// moment, and what the roofline model of src/plan predicts.
#include <sys/resource.h>

#include <algorithm>
#include <fstream>
#include <iostream>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "base/machine.h"
#include "base/status_macros.h"
#include "bench_model.h"
#include "engine_gaps.h"
#include "fmt/format.h"
#include "nlohmann/json.hpp"
#include "plan/measure.h"
#include "plan/roofline.h"
#include "timed_ops.h"

namespace fulgur::bench_engine {
namespace {

constexpr int64_t kProbeBytes = int64_t{256} << 20;
constexpr int64_t kDecodeSteps = 8;  // between two probes of the memory
constexpr int64_t kEngineOutput = 24;
constexpr int64_t kEnginePrompt = 16;

struct Options {
  std::string folder;
  int threads = 1;
  int rounds = 5;
  int64_t chunk = 2048;
  std::vector<std::string> cases = {
      "prefill:128",    "prefill:512",     "prefill:4096", "decode:1@128",  "decode:1@4096",
      "decode:1@65536", "decode:1@262144", "decode:4@128", "decode:16@128", "decode:64@128",
      "decode:16@4096", "engine:1",        "engine:16"};
  bool profile = false;
  std::string json;  // file
  kernels::OpChoice ops = kernels::OpChoice::kAuto;
};

struct Case {
  enum class Kind { kPrefill, kDecode, kEngine };
  std::string name;
  Kind kind = Kind::kPrefill;
  int64_t sequences = 1;
  int64_t tokens = 0;  // of the prompt, or of context

  int64_t pages() const { return sequences * kv::Layout::PagesFor(tokens + 1); }
};

struct Result {
  std::string name;
  double tokens_per_second = 0.0;
  double undisturbed = 0.0;  // in time of the first worker's thread
  double predicted = 0.0;    // of `undisturbed`; 0: none
  double roof_share = 0.0;
  double compute_share = 0.0;
  std::optional<EngineTimes> engine;
};

absl::StatusOr<int64_t> ParseNumber(const std::string& text, const std::string& name) {
  int64_t value = 0;
  if (CLI::detail::lexical_cast(text, value) && value > 0) return value;
  return absl::InvalidArgumentError(fmt::format(
      "'{}' is no case; write prefill:TOKENS, decode:SEQUENCES@CONTEXT or engine:SEQUENCES", name));
}

absl::StatusOr<Case> ParseCase(const std::string& name) {
  Case parsed;
  parsed.name = name;
  const size_t colon = std::min(name.find(':'), name.size());
  const std::string kind = name.substr(0, colon);
  const std::string rest = colon < name.size() ? name.substr(colon + 1) : "";
  const size_t at = rest.find('@');
  if (kind == "prefill") {
    ASSIGN_OR_RETURN(parsed.tokens, ParseNumber(rest, name));
  } else if (kind == "decode" && at != std::string::npos) {
    parsed.kind = Case::Kind::kDecode;
    ASSIGN_OR_RETURN(parsed.sequences, ParseNumber(rest.substr(0, at), name));
    ASSIGN_OR_RETURN(parsed.tokens, ParseNumber(rest.substr(at + 1), name));
  } else if (kind == "engine") {
    parsed.kind = Case::Kind::kEngine;
    ASSIGN_OR_RETURN(parsed.sequences, ParseNumber(rest, name));
    parsed.tokens = kEnginePrompt + kEngineOutput;
  } else {
    return ParseNumber("", name).status();
  }
  return parsed;
}

double Median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

class Bench {
 public:
  Bench(const Options& options, std::vector<Case> cases)
      : options_(options), cases_(std::move(cases)), machine_(base::DetectMachine()) {}

  absl::Status Run() {
    RETURN_IF_ERROR(Prepare());
    Warm();
    for (const Case& wanted : cases_) {
      ASSIGN_OR_RETURN(const Result result, Measure(wanted));
      Print(result);
      results_.push_back(result);
    }
    PrintMemory();
    return WriteJson();
  }

 private:
  absl::Status Prepare();
  void Warm();
  absl::StatusOr<Result> Measure(const Case& wanted);
  Result MeasureSteps(const Case& wanted);
  RunTime RunOnce(const Case& wanted);
  plan::StepTime PredictOnce(const Case& wanted, const plan::MachineFigures& machine) const;
  void Print(const Result& result) const;
  void PrintOps(const Case& wanted, double wall, double thread) const;
  void PrintMemory() const;
  absl::Status WriteJson() const;

  const Options options_;
  const std::vector<Case> cases_;
  const base::Machine machine_;
  plan::MachineFigures figures_;
  plan::ModelShape shape_;
  std::unique_ptr<BenchModel> model_;
  std::optional<plan::ReadProbe> probe_;
  std::vector<Result> results_;
  double load_seconds_ = 0.0;
};

absl::Status Bench::Prepare() {
  ASSIGN_OR_RETURN(LoadedModel loaded, LoadModel(options_.folder, options_.threads));
  load_seconds_ = loaded.seconds;
  fmt::print("{}: {:.1f} MB of weights {} in {:.2f} s{}\n", options_.folder,
             static_cast<double>(loaded.shape.weight_bytes) / 1e6,
             loaded.file_bytes > 0 ? "loaded" : "made", loaded.seconds,
             loaded.file_bytes > 0
                 ? fmt::format(" ({:.2f} GB/s of files)",
                               static_cast<double>(loaded.file_bytes) / loaded.seconds / 1e9)
                 : "");
  BenchModelOptions options{.threads = options_.threads, .chunk = options_.chunk};
  for (const Case& wanted : cases_) {
    options.sequences = std::max(options.sequences, wanted.sequences);
    options.max_position = std::max(options.max_position, wanted.tokens + 1);
    options.pages = std::max(options.pages, wanted.pages());
  }
  options.ops = options_.ops;
  options.timed = options_.profile;
  shape_ = std::move(loaded.shape);
  ASSIGN_OR_RETURN(model_,
                   BenchModel::Create(options, shape_.config, std::move(loaded.weights), machine_));
  ASSIGN_OR_RETURN(plan::ReadProbe probe, plan::ReadProbe::Create(model_->team(), kProbeBytes));
  probe_ = std::move(probe);
  ASSIGN_OR_RETURN(
      figures_,
      plan::MeasureMachine(machine_, kernels::SelectOps(machine_, options_.ops), model_->team()));
  fmt::print("{}\n{:<18}{:>10}{:>13}{:>11}{:>8}{:>10}{:>12}\n", plan::DescribeFigures(figures_),
             "case", "tok/s", "undisturbed", "predicted", "error", "of read", "of compute");
  return absl::OkStatus();
}

void Bench::Warm() {
  model_->RunPrompt(std::min<int64_t>(kEnginePrompt, options_.chunk));
  model_->RunDecode(1, kEnginePrompt);
}

RunTime Bench::RunOnce(const Case& wanted) {
  if (wanted.kind == Case::Kind::kPrefill) return model_->RunPrompt(wanted.tokens);
  RunTime mean;
  for (int64_t i = 0; i < kDecodeSteps; ++i) {
    const RunTime step = model_->RunDecode(wanted.sequences, wanted.tokens);
    mean.wall += step.wall / kDecodeSteps;
    mean.thread += step.thread / kDecodeSteps;
  }
  return mean;
}

plan::StepTime Bench::PredictOnce(const Case& wanted, const plan::MachineFigures& machine) const {
  const kv::Layout& layout = model_->store().layout();
  if (wanted.kind == Case::Kind::kDecode) {
    const plan::StepShape step{
        .sequences = wanted.sequences, .context = wanted.tokens, .logit_rows = wanted.sequences};
    return plan::PredictStep(shape_, layout, step, machine);
  }
  plan::StepTime time;
  for (int64_t at = 0; at < wanted.tokens; at += options_.chunk) {
    const int64_t rows = std::min(options_.chunk, wanted.tokens - at);
    const plan::StepTime chunk = plan::PredictStep(
        shape_, layout,
        {.rows_each = rows, .context = at, .logit_rows = at + rows == wanted.tokens ? 1 : 0},
        machine);
    time.bytes += chunk.bytes;
    time.ops += chunk.ops;
    time.seconds += chunk.seconds;
  }
  return time;
}

// Each round: the memory, the step, the memory; what was read at that moment is the roof.
Result Bench::MeasureSteps(const Case& wanted) {
  const double tokens =
      static_cast<double>(wanted.kind == Case::Kind::kPrefill ? wanted.tokens : wanted.sequences);
  std::vector<double> rates, own_rates, shares, predictions;
  RunTime all;
  plan::MachineFigures now = figures_;
  if (options_.profile) bench_kernels::ResetTimes();
  for (int round = 0; round < options_.rounds; ++round) {
    const double before = probe_->ReadRate(model_->team(), options_.threads);
    const RunTime time = RunOnce(wanted);
    const double after = probe_->ReadRate(model_->team(), options_.threads);
    now.read_rate = (before + after) / 2;
    now.core_read_rate = std::min(figures_.core_read_rate, now.read_rate);
    const plan::StepTime predicted = PredictOnce(wanted, now);
    rates.push_back(tokens / time.wall);
    own_rates.push_back(tokens / time.thread);
    shares.push_back(predicted.bytes / now.read_rate / time.thread);
    predictions.push_back(tokens / predicted.seconds);
    all.wall += time.wall;
    all.thread += time.thread;
  }
  const plan::StepTime predicted = PredictOnce(wanted, now);
  if (options_.profile) {
    const int64_t steps = wanted.kind == Case::Kind::kDecode ? kDecodeSteps : 1;
    PrintOps(wanted, all.wall * static_cast<double>(steps),
             all.thread * static_cast<double>(steps));
  }
  Result result;
  result.name = wanted.name;
  result.tokens_per_second = Median(rates);
  result.undisturbed = Median(own_rates);
  result.predicted = Median(predictions);
  result.roof_share = Median(shares);
  result.compute_share =
      predicted.ops * result.undisturbed / tokens / figures_.Of(kernels::WeightFormat::kBf16).ops;
  return result;
}

absl::StatusOr<Result> Bench::Measure(const Case& wanted) {
  if (wanted.kind != Case::Kind::kEngine) return MeasureSteps(wanted);
  Result result;
  result.name = wanted.name;
  ASSIGN_OR_RETURN(result.engine,
                   MeasureEngine(*model_, wanted.sequences, kEnginePrompt, kEngineOutput));
  result.tokens_per_second = result.engine->tokens_per_second;
  return result;
}

void Bench::Print(const Result& result) const {
  fmt::print("{:<18}{:>10.1f}", result.name, result.tokens_per_second);
  if (result.engine) {
    fmt::print(
        "   forward {:.2f} %, sampling and events {:.3f} %, planning and between steps "
        "{:.3f} % of {} steps\n",
        100 * result.engine->forward, 100 * result.engine->sampling, 100 * result.engine->planning,
        result.engine->steps);
  } else {
    fmt::print("{:>13.1f}{:>11.1f}{:>+7.1f}%{:>9.1f}%{:>11.1f}%\n", result.undisturbed,
               result.predicted, 100 * (result.predicted / result.undisturbed - 1),
               100 * result.roof_share, 100 * result.compute_share);
  }
  std::cout << std::flush;
}

// The first worker's thread time in each op. Between them it waits at barriers: first spinning,
// which is thread time, then asleep, which is not. Asleep or without a core look the same.
void Bench::PrintOps(const Case& wanted, double wall, double thread) const {
  double rest = thread;
  std::string text;
  for (const auto& [name, spent] : bench_kernels::OpSeconds()) {
    rest -= spent;
    text += fmt::format(" {} {:.1f} %,", name, 100 * spent / thread);
  }
  fmt::print(
      "{}:{} spinning at barriers and between ops {:.1f} %; asleep or without a core {:.1f} % "
      "of the clock\n",
      wanted.name, text, 100 * rest / thread, 100 * std::max(0.0, 1 - thread / wall));
}

void Bench::PrintMemory() const {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  fmt::print(
      "memory: weights {:.1f} MB, sequences {:.1f} MB, step scratch {:.1f} MB; peak of the process "
      "{:.1f} MB, {:.1f} MB of it the probe\n",
      static_cast<double>(shape_.weight_bytes) / 1e6,
      static_cast<double>(model_->store().size_bytes()) / 1e6,
      static_cast<double>(model_->model().scratch_bytes()) / 1e6,
      static_cast<double>(usage.ru_maxrss) / 1e3, static_cast<double>(kProbeBytes) / 1e6);
}

absl::Status Bench::WriteJson() const {
  if (options_.json.empty()) return absl::OkStatus();
  nlohmann::json cases = nlohmann::json::object();
  for (const Result& result : results_) {
    cases[result.name] = {{"tokens_per_second", result.tokens_per_second},
                          {"undisturbed", result.undisturbed},
                          {"predicted", result.predicted},
                          {"roof_share", result.roof_share},
                          {"compute_share", result.compute_share}};
  }
  const nlohmann::json all = {{"cases", cases},
                              {"load_seconds", load_seconds_},
                              {"read_gbps", figures_.read_rate / 1e9},
                              {"machine", plan::DescribeFigures(figures_)}};
  std::ofstream file(options_.json);
  file << all.dump(1) << "\n" << std::flush;
  if (file) return absl::OkStatus();
  return absl::PermissionDeniedError("cannot write " + options_.json);
}

absl::Status RunBench(const Options& options) {
  std::vector<Case> cases;
  for (const std::string& name : options.cases) {
    ASSIGN_OR_RETURN(cases.emplace_back(), ParseCase(name));
  }
  return Bench(options, std::move(cases)).Run();
}

int Main(int argc, char** argv) {
  Options options;
  CLI::App app("Speed of whole steps of a model, and what the roofline model predicts");
  app.add_option("model", options.folder,
                 "a checkpoint, or a folder with a config.json: random weights then")
      ->required()
      ->check(CLI::ExistingDirectory);
  app.add_option("--threads", options.threads)->check(CLI::Range(1, 4096));
  app.add_option("--rounds", options.rounds)->check(CLI::Range(1, 1000));
  app.add_option("--chunk", options.chunk, "prompt tokens of a step")
      ->check(CLI::Range(1, 1 << 20));
  app.add_option("--cases", options.cases,
                 "prefill:TOKENS, decode:SEQUENCES@CONTEXT, engine:SEQUENCES")
      ->delimiter(',')
      ->capture_default_str();
  app.add_flag("--profile", options.profile, "also the time of each op, first worker");
  app.add_option("--json", options.json, "write the results to this file");
  const std::map<std::string, kernels::OpChoice> tables = {{"auto", kernels::OpChoice::kAuto},
                                                           {"scalar", kernels::OpChoice::kScalar},
                                                           {"avx2", kernels::OpChoice::kAvx2},
                                                           {"avx512", kernels::OpChoice::kAvx512}};
  app.add_option("--kernels", options.ops)->transform(CLI::CheckedTransformer(tables));
  CLI11_PARSE(app, argc, argv);
  const absl::Status status = RunBench(options);
  if (status.ok()) return 0;
  std::cerr << status.message() << "\n";
  return 1;
}

}  // namespace
}  // namespace fulgur::bench_engine

int main(int argc, char** argv) { return fulgur::bench_engine::Main(argc, argv); }

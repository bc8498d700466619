#include "cli/bench_run_options.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "cli/words.h"
#include "fmt/format.h"

namespace fulgur::cli {
namespace {

using bench::ArrivalPattern;
using bench::LoadMode;
using bench::RampShape;
using bench::RunOptions;
using bench::Scenario;

constexpr double kDefaultInput = 550.0;  // aiperf's
constexpr double kVllmInput = 1024.0;
constexpr double kVllmOutput = 128.0;
constexpr int64_t kVllmRequests = 1000;
constexpr int64_t kAiperfPool = 100;
constexpr double kMaxRate = 1e6;

// A number if the flag has one.
std::optional<double> Float(const FlagValues& values, std::string_view name) {
  if (!values.Has(name)) return std::nullopt;
  return values.Float(name);
}

std::optional<int64_t> Int(const FlagValues& values, std::string_view name) {
  if (!values.Has(name)) return std::nullopt;
  return values.Int(name);
}

absl::StatusOr<std::vector<int64_t>> ParseConcurrency(const std::string& text) {
  std::vector<int64_t> list;
  for (const std::string_view word : SplitWords(text, ',')) {
    const auto number = ParseWhole<int64_t>(word);
    if (!number || *number < 1 || *number > 1'000'000) {
      return absl::InvalidArgumentError(fmt::format(
          "--concurrency {}: \"{}\" is not a whole number from 1, such as 1,4,8,16", text, word));
    }
    list.push_back(*number);
  }
  if (list.empty()) return absl::InvalidArgumentError("--concurrency: no number is given");
  return list;
}

// ---- What is sent
// --------------------------------------------------------------------------------

absl::Status SetLengths(const FlagValues& values, BenchDialect dialect, Scenario& scenario) {
  if (values.Has("seq-dist")) {
    ASSIGN_OR_RETURN(scenario.lengths, bench::ParseLengthMix(values.String("seq-dist")));
    return absl::OkStatus();
  }
  const bool vllm = dialect == BenchDialect::kVllm;
  bench::LengthPairLaw& lengths = scenario.lengths.front();
  const double ratio = values.Float("random-range-ratio");
  lengths.input = {.mean = Float(values, "isl").value_or(vllm ? kVllmInput : kDefaultInput),
                   .stddev = values.Float("isl-stddev"),
                   .range_ratio = ratio};
  lengths.output = {.mean = Float(values, "osl").value_or(vllm ? kVllmOutput : 0.0),
                    .stddev = values.Float("osl-stddev"),
                    .range_ratio = ratio};
  if (values.Has("prefix-repetition-suffix-len")) {
    lengths.input.mean = static_cast<double>(values.Int("prefix-repetition-suffix-len"));
  }
  if (values.Has("prefix-repetition-output-len")) {
    lengths.output.mean = static_cast<double>(values.Int("prefix-repetition-output-len"));
  }
  return absl::OkStatus();
}

void SetPrefix(const FlagValues& values, Scenario& scenario) {
  bench::PrefixSpec& prefix = scenario.prefix;
  prefix.length = values.Int("prefix-prompt-length");
  if (prefix.length > 0) prefix.groups = Int(values, "num-prefix-prompts").value_or(1);
  prefix.shared_system = values.Int("shared-system-prompt-length");
  prefix.user_context = values.Int("user-context-prompt-length");
  scenario.warm_prefixes = values.Bool("warm-prefixes");
}

void SetTurns(const FlagValues& values, Scenario& scenario) {
  if (values.Has("session-turns-mean")) {
    scenario.turns.turns = {.mean = values.Float("session-turns-mean"),
                            .stddev = values.Float("session-turns-stddev")};
  }
  scenario.turns.delay_ms = {.mean = values.Float("session-turn-delay-mean"),
                             .stddev = values.Float("session-turn-delay-stddev")};
  scenario.turns.delay_ratio = values.Float("session-turn-delay-ratio");
}

void SetTrace(const FlagValues& values, Scenario& scenario) {
  scenario.fixed_schedule = values.Bool("fixed-schedule");
  scenario.trace_block_tokens = values.Int("isl-block-size");
  scenario.trace.speedup = values.Float("trace-speedup");
  scenario.trace.start_offset_ms = values.Float("fixed-schedule-start-offset");
  scenario.trace.end_offset_ms = Float(values, "fixed-schedule-end-offset");
  scenario.trace.shift_to_zero = values.Bool("fixed-schedule-auto-offset");
  scenario.trace.max_input = Int(values, "max-isl");
  scenario.trace.skip_long = values.Bool("skip-long");
  scenario.trace.max_requests = Int(values, "request-count");
}

absl::Status SetDataset(const FlagValues& values, Scenario& scenario) {
  scenario.dataset = values.String("input-file");
  const std::string name = values.String("dataset-name");
  const bool needs_file = name == "sharegpt" || name == "custom";
  if (needs_file && scenario.dataset.empty()) {
    return absl::InvalidArgumentError(
        fmt::format("--dataset-name {} needs --dataset-path FILE; nothing is fetched", name));
  }
  const std::string corpus = name == "sonnet" ? name : values.String("prompt-corpus");
  if (corpus == "sonnet" || corpus == "prose") scenario.corpus = bench::Corpus::kProse;
  if (corpus == "coding" || corpus == "code") scenario.corpus = bench::Corpus::kCode;
  const std::string order = values.String("dataset-sampling-strategy");
  if (order == "shuffle") scenario.order = bench::PoolOrder::kShuffle;
  if (order == "random") scenario.order = bench::PoolOrder::kRandom;
  scenario.pool = Int(values, "num-dataset-entries");
  if (const auto osl = Float(values, "osl")) scenario.default_output_tokens = std::llround(*osl);
  return absl::OkStatus();
}

void SetCounts(const FlagValues& values, BenchDialect dialect, Scenario& scenario) {
  scenario.requests = Int(values, "request-count");
  scenario.duration_s = Float(values, "benchmark-duration");
  const auto prompts = Int(values, "num-prompts");
  if (dialect == BenchDialect::kAiperf) {
    if (prompts) scenario.pool = prompts;
    // aiperf makes a hundred prompts if nothing tells it how many.
    if (!scenario.requests && !scenario.pool && scenario.duration_s) scenario.pool = kAiperfPool;
  } else if (prompts) {
    scenario.requests = prompts;
  } else if (dialect == BenchDialect::kVllm && !scenario.duration_s) {
    scenario.requests = kVllmRequests;
  }
  if (values.Has("num-conversations")) scenario.requests = values.Int("num-conversations");
}

// ---- When it is sent
// -----------------------------------------------------------------------------

absl::Status SetRate(const FlagValues& values, Scenario& scenario) {
  const std::string pattern = values.String("arrival-pattern");
  const std::string text = values.String("request-rate");
  bench::ArrivalLaw& law = scenario.arrivals;
  law.normalize = values.Bool("normalize-arrivals");
  law.burstiness = Float(values, "arrival-smoothness").value_or(1.0);
  law.pattern = pattern == "constant"   ? ArrivalPattern::kConstant
                : law.burstiness != 1.0 ? ArrivalPattern::kGamma
                                        : ArrivalPattern::kPoisson;
  if (pattern == "concurrency_burst") scenario.mode = LoadMode::kBurst;
  if (text.empty() || text == "inf") return absl::OkStatus();
  double rate = 0.0;
  const auto parsed = ParseWhole<double>(text);
  if (parsed) rate = *parsed;
  if (!(rate > 0.0) || rate > kMaxRate) {
    return absl::InvalidArgumentError(fmt::format(
        "--request-rate {}: must be a number of requests per second above 0, or inf", text));
  }
  scenario.mode = LoadMode::kOpen;
  scenario.rate = rate;
  law.rate = rate;
  return absl::OkStatus();
}

// One scenario becomes several, each with a rate of its own.
absl::Status SetRateSweep(const FlagValues& values, RunOptions& options) {
  if (!values.Has("rate-sweep")) return absl::OkStatus();
  const std::string text = values.String("rate-sweep");
  if (values.Has("suite") || values.Has("request-rate") || values.Bool("find-max-rate")) {
    return absl::InvalidArgumentError(
        "--rate-sweep cannot be combined with --suite, --request-rate or --find-max-rate");
  }
  if (values.Has("concurrency") && values.String("concurrency").find(',') != std::string::npos) {
    return absl::InvalidArgumentError("--rate-sweep takes one --concurrency, as a limit, or none");
  }
  const Scenario common = options.scenarios.front();
  options.scenarios.clear();
  for (const std::string_view word : SplitWords(text, ',')) {
    const auto rate = ParseWhole<double>(word);
    if (!rate || !(*rate > 0.0) || *rate > kMaxRate) {
      return absl::InvalidArgumentError(fmt::format(
          "--rate-sweep {}: must be numbers of requests per second above 0, such as 1,2,4", text));
    }
    Scenario scenario = common;
    scenario.id = bench::RateId(common.id, *rate);
    scenario.mode = LoadMode::kOpen;
    scenario.rate = *rate;
    scenario.arrivals.rate = *rate;
    options.scenarios.push_back(std::move(scenario));
  }
  if (options.scenarios.empty()) return absl::InvalidArgumentError("--rate-sweep is empty");
  return absl::OkStatus();
}

// As many requests as MLPerf's rules want for a rate, if the command does not say.
absl::Status SetRateSearch(const FlagValues& values, RunOptions& options) {
  options.find_max_rate = values.Bool("find-max-rate");
  options.slo_attainment = values.Float("slo-attainment");
  if (!options.find_max_rate) return absl::OkStatus();
  if (values.Has("suite") || options.objectives.empty()) {
    return absl::InvalidArgumentError(
        "--find-max-rate needs objectives, such as --goodput ttft:500 tpot:50, and no --suite");
  }
  constexpr int64_t kRequestsPerRate = 1000;
  Scenario& scenario = options.scenarios.front();
  scenario.mode = LoadMode::kOpen;
  scenario.rate = scenario.rate.value_or(1.0);
  scenario.arrivals.rate = *scenario.rate;
  if (!scenario.duration_s && !values.Given("request-count") && !values.Given("num-prompts")) {
    scenario.requests = kRequestsPerRate;
  }
  return absl::OkStatus();
}

absl::Status SetRamp(const FlagValues& values, Scenario& scenario) {
  if (!values.Has("ramp-up-strategy") && !values.Has("ramp-up-duration")) return absl::OkStatus();
  bench::ArrivalLaw& law = scenario.arrivals;
  law.ramp = values.String("ramp-up-strategy") == "exponential" ? RampShape::kExponential
                                                                : RampShape::kLinear;
  law.ramp_start_rate = values.Float("ramp-up-start-rps");
  if (const auto end = Float(values, "ramp-up-end-rps")) law.rate = *end;
  if (law.ramp == RampShape::kExponential && law.ramp_start_rate <= 0.0) {
    return absl::InvalidArgumentError(
        "--ramp-up-start-rps must be above 0 for an exponential rise");
  }
  if (!(law.rate > 0.0) || (!scenario.rate && !values.Has("ramp-up-end-rps"))) {
    return absl::InvalidArgumentError(
        "--ramp-up-strategy needs a rate: --ramp-up-end-rps or --request-rate");
  }
  scenario.mode = LoadMode::kOpen;
  scenario.rate = law.rate;
  const double requests = static_cast<double>(scenario.requests.value_or(0));
  law.ramp_duration_s =
      Float(values, "ramp-up-duration").value_or(2.0 * requests / (law.ramp_start_rate + law.rate));
  return absl::OkStatus();
}

absl::Status SetUsers(const FlagValues& values, Scenario& scenario) {
  if (!values.Has("user-centric-rate")) return absl::OkStatus();
  if (!values.Has("num-users")) {
    return absl::InvalidArgumentError("--user-centric-rate needs --num-users");
  }
  scenario.mode = LoadMode::kUserCentric;
  scenario.rate = values.Float("user-centric-rate");
  scenario.concurrency = {values.Int("num-users")};
  return absl::OkStatus();
}

absl::StatusOr<Scenario> MakeScenario(const FlagValues& values, BenchDialect dialect) {
  Scenario scenario;
  if (values.Has("scenario-id")) scenario.id = values.String("scenario-id");
  RETURN_IF_ERROR(SetDataset(values, scenario));
  RETURN_IF_ERROR(SetLengths(values, dialect, scenario));
  SetPrefix(values, scenario);
  SetTurns(values, scenario);
  SetTrace(values, scenario);
  SetCounts(values, dialect, scenario);
  RETURN_IF_ERROR(SetRate(values, scenario));
  RETURN_IF_ERROR(SetRamp(values, scenario));
  RETURN_IF_ERROR(SetUsers(values, scenario));
  return scenario;
}

// ---- The server, requests, results
// ---------------------------------------------------------------

absl::Status SetHeaders(const FlagValues& values, RunOptions& options) {
  for (const std::string& header : values.List("header")) {
    const size_t colon = header.find(':');
    if (colon == 0 || colon == std::string::npos) {
      return absl::InvalidArgumentError(
          fmt::format("--header: \"{}\" is not NAME:VALUE", header.substr(0, colon)));
    }
    const size_t start = std::min(header.find_first_not_of(' ', colon + 1), header.size());
    options.headers.emplace_back(header.substr(0, colon), header.substr(start));
  }
  const std::string key = values.String("api-key");
  if (!key.empty()) options.headers.emplace_back("Authorization", "Bearer " + key);
  return absl::OkStatus();
}

absl::Status SetServer(const FlagValues& values, BenchDialect dialect, RunOptions& options) {
  if (values.Has("url")) {
    options.urls = values.List("url");
  } else if (values.Has("host") || values.Has("port")) {
    const std::string host = values.Has("host") ? values.String("host") : "127.0.0.1";
    options.urls = {fmt::format("http://{}:{}", host, Int(values, "port").value_or(8000))};
  }
  RETURN_IF_ERROR(SetHeaders(values, options));
  options.http.verify_tls = !values.Bool("insecure");
  const std::string reuse = values.String("connection-reuse-strategy");
  if (reuse == "never") options.http.reuse = bench::ConnectionReuse::kNever;
  if (reuse == "sticky-user-sessions") options.http.reuse = bench::ConnectionReuse::kSticky;
  options.session_header = values.String("session-header");
  options.endpoint_path = values.String("endpoint");
  options.wait_for_server_s = values.Float("wait-for-model-timeout");
  options.server_metrics = values.Bool("server-metrics");
  options.reset_prefix_cache = values.Bool("reset-kv-cache");

  std::string kind =
      values.Has("backend") ? values.String("backend") : values.String("endpoint-type");
  if (dialect == BenchDialect::kVllm && !values.Has("backend") && !values.Given("endpoint-type")) {
    kind = "openai";
  }
  const bool chat = kind == "chat" || kind == "openai-chat" ||
                    options.endpoint_path.ends_with("chat/completions");
  options.shape.endpoint = chat ? bench::Endpoint::kChat : bench::Endpoint::kCompletions;
  if (kind == "responses" || options.endpoint_path.ends_with("/responses")) {
    options.shape.endpoint = bench::Endpoint::kResponses;
  }
  options.shape.streaming = dialect != BenchDialect::kAiperf || values.Bool("streaming");
  if (values.Given("streaming")) options.shape.streaming = values.Bool("streaming");
  return absl::OkStatus();
}

absl::Status SetRequests(const FlagValues& values, BenchDialect dialect, RunOptions& options) {
  bench::RequestShape& shape = options.shape;
  shape.model = values.String("model");
  shape.legacy_max_tokens = values.Bool("use-legacy-max-tokens");
  shape.per_chunk_usage = values.Bool("per-chunk-usage");
  for (const std::string& word : values.List("extra-inputs")) {
    RETURN_IF_ERROR(bench::AddExtraInput(word, shape.extra));
  }
  if (values.Has("extra-body")) {
    RETURN_IF_ERROR(bench::AddExtraInput(values.String("extra-body"), shape.extra));
  }
  if (values.Bool("ignore-eos")) shape.extra["ignore_eos"] = true;
  if (const auto value = Float(values, "temperature")) shape.extra["temperature"] = *value;
  if (const auto value = Float(values, "top-p")) shape.extra["top_p"] = *value;

  options.tokenizer = values.String("tokenizer");
  options.wire_lengths = values.String("isl-mode") == "wire" || values.Bool("apply-chat-template");
  options.input_from_usage = values.Bool("use-server-token-count") || options.wire_lengths;
  const bool server_counts = dialect != BenchDialect::kAiperf ||
                             values.Bool("use-server-token-count") || shape.per_chunk_usage ||
                             options.tokenizer.empty();
  options.token_source = server_counts && !values.Bool("use-client-token-count")
                             ? bench::TokenSource::kUsage
                             : bench::TokenSource::kTokenizer;
  options.seed = values.Int("random-seed");
  ASSIGN_OR_RETURN(options.objectives,
                   bench::ParseGoodput(absl::StrJoin(values.List("goodput"), " ")));
  return absl::OkStatus();
}

void SetSending(const FlagValues& values, RunOptions& options) {
  options.warmup_requests = Int(values, "warmup-request-count");
  if (values.Bool("no-warmup")) options.warmup_requests = 0;
  options.warmup_concurrency = Int(values, "warmup-concurrency");
  options.drain_after_warmup = values.Bool("drain-after-warmup");
  const std::string stagger = values.String("stagger");
  if (stagger != "auto") options.stagger = stagger == "on";
  options.ramp_s = values.Float("concurrency-ramp-duration");
  options.prefill_concurrency = values.Int("prefill-concurrency");
  options.grace_s = values.Float("benchmark-grace-period");
  options.timeout_s = values.Float("request-timeout-seconds");
  options.cancellation_percent = values.Float("request-cancellation-rate");
  options.cancellation_delay_s = values.Float("request-cancellation-delay");
  options.max_client_lag_ms = values.Float("max-client-lag");
  if (const auto percent = Float(values, "failed-request-threshold")) {
    options.failure_limit = *percent / 100.0;
  } else if (options.cancellation_percent > 0) {
    options.failure_limit = 1.0;  // requests that are cancelled on purpose count as failed
  }
}

std::string DefaultFolder(const RunOptions& options) {
  std::string model = options.shape.model.empty() ? "model" : options.shape.model;
  std::replace(model.begin(), model.end(), '/', '_');
  const std::string_view type = bench::EndpointName(options.shape.endpoint);
  const std::string load = options.concurrency.size() == 1 && options.suite_name.empty()
                               ? fmt::format("-concurrency{}", options.concurrency.front())
                               : "";
  return fmt::format("artifacts/{}-openai-{}{}", model, type, load);
}

void SetResults(const FlagValues& values, RunOptions& options) {
  options.artifact_dir =
      values.Has("artifact-dir") ? values.String("artifact-dir") : DefaultFolder(options);
  options.export_prefix = values.String("profile-export-prefix");
  if (values.String("export-level") == "summary") {
    options.export_level = bench::ExportLevel::kSummary;
  }
  options.write_inputs = values.Bool("inputs-json");
  options.write_outputs = values.Bool("outputs-json");
  options.force = values.Bool("force");
  options.cooldown_s = values.Float("cooldown-seconds");
  options.repetitions = static_cast<int32_t>(values.Int("num-profile-runs"));
  options.slice_s = values.Float("slice-duration");
  options.confidence_level = values.Float("confidence-level");
  options.keep_for_vllm = values.Bool("save-result");
  options.silent = values.String("ui") == "none";
}

absl::Status SetScenarios(const FlagValues& values, BenchDialect dialect, RunOptions& options) {
  if (!values.Has("suite")) {
    ASSIGN_OR_RETURN(Scenario scenario, MakeScenario(values, dialect));
    options.scenarios.push_back(std::move(scenario));
  } else {
    ASSIGN_OR_RETURN(bench::Suite suite, bench::LoadSuite(values.String("suite")));
    options.suite_name = suite.name;
    options.scenarios = std::move(suite.scenarios);
    if (!suite.concurrency.empty()) options.concurrency = suite.concurrency;
    for (const auto& [key, value] : suite.extra.items()) {
      if (!options.shape.extra.contains(key)) options.shape.extra[key] = value;
    }
    if (suite.seed && !values.Given("random-seed")) options.seed = *suite.seed;
    if (suite.order) options.order = *suite.order;
    for (Scenario& scenario : options.scenarios) {
      if (values.Given("request-count")) scenario.requests = values.Int("request-count");
    }
  }
  RETURN_IF_ERROR(SetRateSweep(values, options));
  RETURN_IF_ERROR(SetRateSearch(values, options));
  if (values.Has("concurrency")) {
    ASSIGN_OR_RETURN(options.concurrency, ParseConcurrency(values.String("concurrency")));
    for (Scenario& scenario : options.scenarios) {
      if (values.Has("suite")) scenario.concurrency.clear();
    }
  } else if (!values.Has("suite") && options.scenarios[0].mode == LoadMode::kOpen) {
    for (Scenario& scenario : options.scenarios) scenario.concurrency = {0};  // no limit
  } else if (dialect == BenchDialect::kVllm && !values.Has("suite")) {
    // vLLM's client sends everything at once unless a limit is given.
    options.scenarios[0].concurrency = {options.scenarios[0].requests.value_or(1)};
  }
  const std::string order = values.String("order");
  if (order == "concurrency-major") options.order = bench::CellOrder::kConcurrencyMajor;
  if (order == "random") options.order = bench::CellOrder::kRandom;
  if (values.Has("rate-sweep")) {
    options.layout = bench::FolderLayout::kRates;
  } else if (!options.suite_name.empty() || options.scenarios.size() > 1) {
    options.layout = bench::FolderLayout::kSuite;
  } else if (options.concurrency.size() > 1 && options.scenarios[0].concurrency.empty()) {
    options.layout = bench::FolderLayout::kSweep;
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<RunOptions> BuildRunOptions(const FlagValues& values, BenchDialect dialect) {
  RunOptions options;
  options.corrected = dialect == BenchDialect::kRun ? values.String("mode") == "corrected" : false;
  if (values.Given("mode")) options.corrected = values.String("mode") == "corrected";
  RETURN_IF_ERROR(SetServer(values, dialect, options));
  RETURN_IF_ERROR(SetRequests(values, dialect, options));
  RETURN_IF_ERROR(SetScenarios(values, dialect, options));
  SetSending(values, options);
  SetResults(values, options);
  return options;
}

std::string RedactedCommand(const std::string& start, std::span<const std::string> args) {
  std::string command = start;
  bool hide = false;
  for (const std::string& arg : args) {
    const std::string name = arg.substr(0, arg.find('='));
    const bool secret =
        name == "--api-key" || name == "--api_key" || name == "--header" || name == "-H";
    if (hide) {
      command += " '<redacted>'";
    } else if (secret && arg.size() > name.size()) {
      command += fmt::format(" {}='<redacted>'", name);
    } else {
      const bool plain = arg.starts_with('-') || ParseWhole<int64_t>(arg).has_value();
      command += plain ? " " + arg : fmt::format(" '{}'", arg);
    }
    hide = secret && arg.size() == name.size();
  }
  return command;
}

}  // namespace fulgur::cli

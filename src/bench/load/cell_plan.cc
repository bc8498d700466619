#include "bench/load/cell_plan.h"

#include <algorithm>
#include <random>

#include "base/status_macros.h"
#include "bench/load/random.h"
#include "bench/results/sha256.h"
#include "fmt/format.h"

namespace fulgur::bench {
namespace {

using Json = nlohmann::ordered_json;

constexpr int64_t kNsPerSecond = 1'000'000'000;
constexpr int64_t kFewestWarmups = 4;
constexpr int64_t kFewestRequests = 10;
constexpr double kDefaultFailureLimit = 0.1;

int64_t ToNs(double seconds) { return static_cast<int64_t>(seconds * kNsPerSecond); }

// The published runs sent one min_tokens for all requests, also where lengths are drawn.
Json ConstantMinTokens(Json extra, const Scenario& scenario) {
  for (auto& [key, value] : extra.items()) {
    if (value == "osl") value = std::llround(scenario.lengths.front().output.mean);
  }
  return extra;
}

RequestShape ResolveShape(const RunOptions& options, const Scenario& scenario,
                          const RequestShape& common) {
  RequestShape shape = common;
  for (const auto& [key, value] : scenario.extra.items()) {
    if (!shape.extra.contains(key)) shape.extra[key] = value;
  }
  shape.clamp_min_tokens = options.corrected;
  if (!options.corrected) shape.extra = ConstantMinTokens(shape.extra, scenario);
  return shape;
}

absl::Status ReadData(const Scenario& scenario, WorkloadSpec& workload) {
  if (scenario.dataset.empty()) return absl::OkStatus();
  if (scenario.dataset == "natural") {
    workload.dataset = NaturalQuestions();
    return absl::OkStatus();
  }
  ASSIGN_OR_RETURN(workload.dataset, ReadDataset(scenario.dataset));
  auto& trace = workload.dataset->trace;
  if (trace.empty()) return absl::OkStatus();
  trace = SelectTrace(std::move(trace), scenario.trace);
  if (!trace.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      fmt::format("--input-file {}: no line is left within the offsets", scenario.dataset));
}

bool HasTimes(const WorkloadSpec& workload) {
  if (!workload.dataset) return false;
  const auto& trace = workload.dataset->trace;
  const auto& sessions = workload.dataset->sessions;
  return std::any_of(trace.begin(), trace.end(),
                     [](const TraceEntry& entry) { return entry.has_timestamp; }) ||
         std::any_of(sessions.begin(), sessions.end(),
                     [](const PlannedSession& session) { return session.at_ns.has_value(); });
}

absl::StatusOr<WorkloadSpec> ResolveWorkload(const RunOptions& options, const Scenario& scenario,
                                             const Surroundings& surroundings) {
  WorkloadSpec workload;
  workload.lengths = scenario.lengths;
  workload.prefix = scenario.prefix;
  workload.turns = scenario.turns;
  workload.pool = scenario.pool;
  workload.order = scenario.order;
  workload.trace_block_tokens = scenario.trace_block_tokens;
  workload.template_overhead = options.wire_lengths ? surroundings.template_overhead : 0;
  workload.max_model_len = surroundings.max_model_len;
  workload.default_output_tokens = scenario.default_output_tokens;
  workload.seed = options.seed;
  RETURN_IF_ERROR(ReadData(scenario, workload));
  return workload;
}

std::optional<int64_t> SessionCount(const RunOptions& options, const Scenario& scenario,
                                    const WorkloadSpec& workload, int64_t concurrency) {
  std::optional<int64_t> count = scenario.requests;
  if (!count && !scenario.duration_s) {
    if (workload.dataset) {
      return static_cast<int64_t>(
          std::max(workload.dataset->sessions.size(), workload.dataset->trace.size()));
    }
    count = std::max(kFewestRequests, 2 * concurrency);
  }
  if (count && options.corrected && !workload.dataset) {
    count = std::max(*count, scenario.min_requests_per_slot * concurrency);
  }
  return count;
}

int64_t WarmupCount(const RunOptions& options, int64_t concurrency) {
  if (options.warmup_requests) return *options.warmup_requests;
  return options.corrected ? std::max(kFewestWarmups, concurrency) : 0;
}

LoadSpec ResolveLoad(const RunOptions& options, const Scenario& scenario, int64_t concurrency,
                     std::optional<int64_t> sessions) {
  LoadSpec load;
  load.mode = scenario.mode;
  load.concurrency = concurrency;
  load.prefill_concurrency = options.prefill_concurrency;
  load.warmup_requests = WarmupCount(options, concurrency);
  load.warmup_concurrency = std::max<int64_t>(
      1, options.warmup_concurrency.value_or(concurrency > 0 ? concurrency : kFewestWarmups));
  load.drain_after_warmup = options.drain_after_warmup;
  load.stagger = options.stagger.value_or(options.corrected);
  load.user_rate = scenario.rate.value_or(1.0);
  if (scenario.duration_s) load.duration_ns = ToNs(*scenario.duration_s);
  load.grace_ns = ToNs(options.grace_s);
  load.ramp_ns = ToNs(options.ramp_s);
  load.timeout_ns = ToNs(options.timeout_s);
  load.cancellation_percent = options.cancellation_percent;
  load.cancellation_delay_ns = ToNs(options.cancellation_delay_s);
  load.failure_limit = options.failure_limit;
  if (!load.failure_limit && options.corrected) load.failure_limit = kDefaultFailureLimit;
  load.seed = options.seed;
  if (load.mode != LoadMode::kOpen) return load;
  RandomStream random(options.seed, "arrivals");
  load.arrivals = sessions ? PlanArrivals(scenario.arrivals, *sessions, random)
                           : PlanArrivalsFor(scenario.arrivals, *scenario.duration_s, random);
  return load;
}

std::string PathOf(const RunOptions& options, const HttpTarget& target) {
  std::string path = options.endpoint_path.empty()
                         ? std::string(EndpointPath(options.shape.endpoint))
                         : options.endpoint_path;
  if (!path.starts_with('/')) path.insert(0, 1, '/');
  return target.path + path;
}

Transport ResolveTransport(const RunOptions& options, const Surroundings& surroundings,
                           RequestShape shape) {
  Transport transport;
  transport.num_targets = surroundings.targets.size();
  for (const HttpTarget& target : surroundings.targets) {
    transport.paths.push_back(PathOf(options, target));
  }
  transport.headers = options.headers;
  transport.headers.emplace_back("Content-Type", "application/json");
  transport.headers.emplace_back("Accept",
                                 shape.streaming ? "text/event-stream" : "application/json");
  transport.headers.emplace_back("User-Agent", "fulgur/" + options.version);
  transport.session_header = options.session_header;
  transport.shape = std::move(shape);
  return transport;
}

std::string TypeOf(const Scenario& scenario) {
  switch (scenario.mode) {
    case LoadMode::kClosed:
      return "concurrency";
    case LoadMode::kOpen:
      return scenario.arrivals.pattern == ArrivalPattern::kConstant  ? "constant"
             : scenario.arrivals.pattern == ArrivalPattern::kPoisson ? "poisson"
                                                                     : "gamma";
    case LoadMode::kSchedule:
      return "fixed_schedule";
    case LoadMode::kBurst:
      return "concurrency_burst";
    case LoadMode::kUserCentric:
      return "user_centric";
  }
  return "concurrency";
}

std::string NewBenchmarkId() {
  std::random_device device;
  const uint64_t bits = (uint64_t{device()} << 32) | device();
  return fmt::format("{:012x}", bits & 0xffffffffffffULL);
}

void DescribeLengths(const Scenario& scenario, RunPlan& plan) {
  if (!scenario.dataset.empty()) {
    plan.details["dataset"] = scenario.dataset;
    return;
  }
  const auto spec = [](const LengthLaw& law) { return LengthSpec{law.mean, law.stddev}; };
  if (scenario.lengths.size() == 1 && scenario.lengths[0].weight == 1.0) {
    plan.input_length = spec(scenario.lengths[0].input);
    if (scenario.lengths[0].output.mean > 0) {
      plan.output_length = spec(scenario.lengths[0].output);
    }
    return;
  }
  double total = 0.0;
  for (const LengthPairLaw& pair : scenario.lengths) total += pair.weight;
  for (const LengthPairLaw& pair : scenario.lengths) {
    plan.sequence_distribution.push_back(
        {spec(pair.input), spec(pair.output), pair.weight / total});
  }
}

RunPlan DescribeRun(const RunOptions& options, const Scenario& scenario, const CellPlan& cell) {
  RunPlan plan;
  plan.benchmark_id = NewBenchmarkId();
  plan.models = {cell.transport.shape.model};
  plan.urls = options.urls;
  plan.endpoint_type = EndpointName(cell.transport.shape.endpoint);
  plan.streaming = cell.transport.shape.streaming;
  plan.per_chunk_usage = cell.transport.shape.per_chunk_usage;
  for (const auto& [key, value] : cell.transport.shape.extra.items()) {
    plan.extra[key] = value.dump(-1, ' ', false, Json::error_handler_t::replace);
  }
  DescribeLengths(scenario, plan);
  plan.dataset_entries = scenario.pool ? scenario.pool : cell.sessions;
  const auto limit = cell.concurrency > 0 ? std::optional<int64_t>(cell.concurrency) : std::nullopt;
  if (cell.load.warmup_requests > 0) {
    PlannedPhase warmup;
    warmup.name = "warmup";
    warmup.requests = cell.load.warmup_requests;
    warmup.concurrency = cell.load.mode == LoadMode::kClosed ? limit : cell.load.warmup_concurrency;
    plan.phases.push_back(warmup);
  }
  PlannedPhase profiling;
  profiling.name = "profiling";
  profiling.type = TypeOf(scenario);
  profiling.requests = cell.sessions;
  profiling.duration_s = scenario.duration_s;
  profiling.concurrency = limit;
  if (scenario.mode == LoadMode::kOpen || scenario.mode == LoadMode::kUserCentric) {
    profiling.rate = scenario.rate;
  }
  plan.phases.push_back(profiling);
  for (const Objective& objective : options.objectives) {
    plan.objectives[objective.tag] = objective.limit;
  }
  plan.tokenizer = options.tokenizer;
  plan.token_source = options.token_source == TokenSource::kUsage ? "usage" : "tokenizer";
  plan.random_seed = options.seed;
  plan.trial = cell.repetition;
  plan.command_line = options.command_line;
  plan.details["mode"] = options.corrected ? "corrected" : "seed-exact";
  plan.details["isl_mode"] = options.wire_lengths ? "wire" : "text";
  if (!options.suite_name.empty()) plan.details["suite"] = options.suite_name;
  return plan;
}

// What is sent decides, not where results go.
std::string Canonical(const RunOptions& options, const Scenario& scenario, const CellPlan& cell) {
  Json lengths = Json::array();
  for (const LengthPairLaw& pair : scenario.lengths) {
    lengths.push_back(
        {pair.input.mean, pair.input.stddev, pair.output.mean, pair.output.stddev, pair.weight});
  }
  const LoadSpec& load = cell.load;
  const Json json{{"scenario", scenario.id},
                  {"concurrency", cell.concurrency},
                  {"sessions", cell.sessions.value_or(0)},
                  {"model", cell.transport.shape.model},
                  {"urls", options.urls},
                  {"paths", cell.transport.paths},
                  {"streaming", cell.transport.shape.streaming},
                  {"extra", cell.transport.shape.extra},
                  {"lengths", lengths},
                  {"prefix",
                   {scenario.prefix.groups, scenario.prefix.length, scenario.prefix.shared_system,
                    scenario.prefix.user_context}},
                  {"turns",
                   {scenario.turns.turns.mean, scenario.turns.turns.stddev,
                    scenario.turns.delay_ms.mean, scenario.turns.delay_ms.stddev}},
                  {"pool", scenario.pool.value_or(0)},
                  {"dataset", scenario.dataset},
                  {"corpus", static_cast<int>(scenario.corpus)},
                  {"mode", TypeOf(scenario)},
                  {"rate", scenario.rate.value_or(0.0)},
                  {"burstiness", scenario.arrivals.burstiness},
                  {"duration", scenario.duration_s.value_or(0.0)},
                  {"warmup", load.warmup_requests},
                  {"stagger", load.stagger},
                  {"corrected", options.corrected},
                  {"seed", options.seed},
                  {"repetition", cell.repetition},
                  {"wire", options.wire_lengths}};
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace

std::string CellPlan::Name() const {
  return concurrency > 0 ? fmt::format("{} c{}", scenario, concurrency) : scenario;
}

absl::StatusOr<CellPlan> ResolveCell(const RunOptions& options, const Scenario& given,
                                     int64_t concurrency, const Surroundings& surroundings) {
  Scenario scenario = given;
  CellPlan cell;
  cell.scenario = scenario.id;
  cell.corpus = scenario.corpus;
  ASSIGN_OR_RETURN(cell.workload, ResolveWorkload(options, scenario, surroundings));
  if (HasTimes(cell.workload) && scenario.fixed_schedule && scenario.mode == LoadMode::kClosed) {
    scenario.mode = LoadMode::kSchedule;
    concurrency = 0;
  }
  cell.concurrency = concurrency;
  cell.sessions = SessionCount(options, scenario, cell.workload, concurrency);
  cell.load = ResolveLoad(options, scenario, concurrency, cell.sessions);
  if (scenario.warm_prefixes && scenario.prefix.groups > 0) {
    cell.prefix_warmups = scenario.prefix.groups;
    cell.load.warmup_requests += scenario.prefix.groups;
  }
  cell.transport =
      ResolveTransport(options, surroundings, ResolveShape(options, scenario, surroundings.shape));
  cell.run = DescribeRun(options, scenario, cell);
  cell.hash = Sha256Hex(Canonical(options, scenario, cell));
  cell.run.details["plan_hash"] = cell.hash;
  return cell;
}

}  // namespace fulgur::bench

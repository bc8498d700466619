#include "bench/load/run_cell.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <memory>
#include <utility>

#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "bench/load/clock.h"
#include "bench/load/load_driver.h"
#include "bench/load/prompt_text.h"
#include "bench/load/session_queue.h"
#include "bench/results/aiperf_writer.h"
#include "bench/results/lint.h"
#include "bench/results/run_file.h"
#include "fmt/format.h"

namespace fulgur::bench {
namespace {

namespace fs = std::filesystem;

constexpr size_t kAheadBytes = 256 << 20;
constexpr int64_t kAheadPerUser = 16;  // sessions, of runs that end by time
constexpr int64_t kAheadAtLeast = 256;
constexpr double kMaxTraceLagMs = 500.0;
constexpr double kMaxCpu = 0.8;
constexpr double kMaxDifferingPart = 0.1;
constexpr double kMaxMergedPart = 0.2;
constexpr double kIdleWaitS = 5.0;
constexpr double kNsPerSecond = 1e9;

constexpr std::string_view kRunFile = "fulgur_run.json";

std::string FileName(const RunOptions& options, std::string_view ending) {
  if (options.export_prefix.empty()) return fmt::format("profile_export{}", ending);
  const std::string_view own = ending.starts_with("_aiperf") ? ending.substr(7) : ending;
  return fmt::format("{}{}", options.export_prefix, own);
}

// Makes the sessions of a cell in order, warm-up first, and writes inputs.json on the way.
class SessionMaker {
 public:
  SessionMaker(const CellPlan& plan, Workload workload, std::optional<InputsWriter> inputs)
      : plan_(plan), workload_(std::move(workload)), inputs_(std::move(inputs)) {}

  std::optional<PlannedSession> Next() {
    const int64_t position = next_++;
    const int64_t warmups = plan_.load.warmup_requests;
    if (position < plan_.prefix_warmups) return workload_.MakePrefixWarmup(position);
    if (position < warmups) return workload_.Make(position, /*warmup=*/true);
    const int64_t index = position - warmups;
    if (plan_.sessions && index >= *plan_.sessions) {
      CloseInputs();
      return std::nullopt;
    }
    PlannedSession session = workload_.Make(index, /*warmup=*/false);
    if (inputs_) status_.Update(inputs_->Append(session.id, Payloads(session)));
    return session;
  }

  const Workload& workload() const { return workload_; }
  // Complete once the queue is gone.
  absl::Status Finish() {
    CloseInputs();
    return status_;
  }

 private:
  std::vector<std::string> Payloads(const PlannedSession& session) const {
    std::vector<std::string> payloads = {session.turns.front().body};
    std::vector<ChatMessage> history = session.turns.front().messages;
    for (size_t i = 1; i < session.turns.size(); ++i) {
      const PlannedTurn& turn = session.turns[i];
      history.insert(history.end(), turn.messages.begin(), turn.messages.end());
      payloads.push_back(MakeBody(plan_.transport.shape, history, turn.output_tokens));
    }
    return payloads;
  }

  void CloseInputs() {
    if (inputs_) status_.Update(inputs_->Close());
    inputs_.reset();
  }

  const CellPlan& plan_;
  Workload workload_;
  std::optional<InputsWriter> inputs_;
  int64_t next_ = 0;
  absl::Status status_;
};

absl::Status MakeFolder(const fs::path& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (!error) return absl::OkStatus();
  return absl::PermissionDeniedError(
      fmt::format("--artifact-dir: {} cannot be made: {}", folder.string(), error.message()));
}

Display::Style StyleOf(const RunOptions& options) {
  if (options.silent) return Display::Style::kSilent;
  return options.terminal ? Display::Style::kTerminal : Display::Style::kLog;
}

double Value(const MetricMap& metrics, const std::string& tag) {
  const auto found = metrics.find(tag);
  return found == metrics.end() ? 0.0 : found->second.avg.value_or(0.0);
}

double P99(const MetricMap& metrics, const std::string& tag) {
  const auto found = metrics.find(tag);
  if (found == metrics.end()) return 0.0;
  const auto percentile = found->second.percentiles.find(99);
  return percentile == found->second.percentiles.end() ? 0.0 : percentile->second;
}

// Whether the numbers are the server's or this program's own.
void JudgeClient(const RunOptions& options, const CellPlan& plan, CellResult& result) {
  const MetricMap& metrics = result.cell.metrics;
  const double lag = P99(metrics, "fulgur_client_lag");
  const double send_lag = P99(metrics, "fulgur_send_lag");
  const double lag_limit = options.max_client_lag_ms;
  const double limit =
      plan.load.mode == LoadMode::kSchedule ? std::max(kMaxTraceLagMs, lag_limit) : lag_limit;
  if (lag > lag_limit) {
    result.invalid_reasons.push_back(
        fmt::format("this program was late itself: {:.1f} ms at p99, more than {:.0f} ms; use a "
                    "machine with a free core, or less load",
                    lag, lag_limit));
  }
  if (send_lag > limit) {
    result.invalid_reasons.push_back(
        fmt::format("requests left late: {:.1f} ms at p99, more than {:.0f} ms", send_lag, limit));
  }
  const double cpu = Value(metrics, "fulgur_client_cpu");
  if (cpu > kMaxCpu) {
    result.invalid_reasons.push_back(
        fmt::format("the load generator was busy {:.0f} % of its core, more than {:.0f} %",
                    cpu * 100, kMaxCpu * 100));
  }
}

void JudgeRun(const LoadOutcome& outcome, const RecordedRun& run, CellResult& result) {
  if (!outcome.stopped_because.empty()) {
    result.complete = false;
    result.invalid_reasons.push_back(fmt::format("stopped early: {}", outcome.stopped_because));
  }
  if (run.valid_requests == 0) {
    result.invalid_reasons.push_back("no request ended well");
  }
  if (run.cancelled_by_end > 0) {
    result.notes.push_back(
        fmt::format("{} requests still ran at the end and were cancelled", run.cancelled_by_end));
  }
}

void NoteTokens(const RecordedRun& run, CellResult& result) {
  if (run.valid_requests == 0) return;
  const auto valid = static_cast<double>(run.valid_requests);
  if (run.without_tokens > 0) {
    result.notes.push_back(fmt::format(
        "{} of {} answers came without usage and no --tokenizer is given: their tokens are not "
        "known, and they are missing in all token metrics",
        run.without_tokens, run.valid_requests));
  } else if (run.without_usage > 0) {
    result.notes.push_back(fmt::format(
        "{} of {} answers came without usage: their tokens were counted with the tokenizer",
        run.without_usage, run.valid_requests));
  }
  const double differing = Value(result.cell.metrics, "usage_discrepancy_count");
  if (differing > kMaxDifferingPart * valid) {
    result.invalid_reasons.push_back(fmt::format(
        "server and tokenizer disagree by more than 10 % on the tokens of {:.0f} of {} answers: "
        "the tokenizer is not the model's",
        differing, run.valid_requests));
  }
  if (static_cast<double>(run.large_first_chunk) > kMaxDifferingPart * valid) {
    result.notes.push_back(
        "first messages bring many tokens at once: a parser holds text back, and the time to the "
        "first token is not that of the first token");
  }
  if (run.output_frames > 0 && static_cast<double>(run.merged_frames) >
                                   kMaxMergedPart * static_cast<double>(run.output_frames)) {
    result.notes.push_back(fmt::format(
        "{} of {} messages arrived together with the one before: something on the way holds them "
        "back",
        run.merged_frames, run.output_frames));
  }
  const double mismatches = Value(result.cell.metrics, "osl_mismatch_count");
  if (mismatches > 0) {
    result.notes.push_back(fmt::format(
        "{:.0f} answers are not as long as asked for; send ignore_eos:true and min_tokens:osl to "
        "fix their length",
        mismatches));
  }
}

void NoteErrors(CellResult& result) {
  const size_t shown = std::min<size_t>(3, result.cell.errors.size());
  for (size_t i = 0; i < shown; ++i) {
    const ErrorGroup& error = result.cell.errors[i];
    result.notes.push_back(fmt::format("{} x {}{}: {}", error.count,
                                       error.code ? fmt::format("{} ", *error.code) : "",
                                       error.type, error.message.substr(0, 200)));
  }
  if (result.cell.errors.size() > shown) {
    result.notes.push_back(
        fmt::format("and {} more kinds of errors", result.cell.errors.size() - shown));
  }
}

void NotePrompts(const Workload& workload, const LoadOutcome& outcome, CellResult& result) {
  if (workload.clipped() > 0) {
    result.notes.push_back(
        fmt::format("{} outputs were cut to fit the model's limit", workload.clipped()));
  }
  if (workload.inexact() > 0) {
    result.notes.push_back(fmt::format(
        "{} prompts differ from the length asked for; the length recorded is the real one",
        workload.inexact()));
  }
  if (outcome.starved > 0) {
    result.notes.push_back(
        fmt::format("{} sends waited for their prompt to be made", outcome.starved));
  }
  if (const auto expected = workload.expected_hits()) {
    result.cell.metrics["fulgur_expected_prefix_hit_rate"] = Scalar(*expected, "ratio");
  }
}

void SetPhases(const LoadOutcome& outcome, Cell& cell) {
  if (outcome.warmup_wall_start_ns > 0) {
    const int64_t end = outcome.warmup_wall_end_ns > 0 ? outcome.warmup_wall_end_ns : WallNs();
    cell.phases.push_back({"warmup", outcome.warmup_wall_start_ns, end});
  }
  if (outcome.began) {
    cell.phases.push_back({"profiling", outcome.wall_start_ns, outcome.wall_end_ns});
  }
}

absl::Status WriteFiles(const RunOptions& options, const CellPlan& plan, CellResult& result) {
  auto& details = result.plan.details;
  details["valid"] = result.valid() ? "true" : "false";
  details["complete"] = result.complete ? "true" : "false";
  if (!result.valid()) details["invalid_reasons"] = absl::StrJoin(result.invalid_reasons, "; ");
  if (!result.notes.empty()) details["notes"] = absl::StrJoin(result.notes, "; ");
  const fs::path& folder = plan.folder;
  RETURN_IF_ERROR(WriteAiperfSummary(SummaryFile(options, folder), result.plan, result.cell));
  RETURN_IF_ERROR(WriteAiperfCsv(folder / FileName(options, "_aiperf.csv"), result.cell));
  Result whole;
  whole.cell = result.cell;
  whole.plan = result.plan;
  return WriteRunFile(folder / kRunFile, result.plan, result.cell, Lint(whole, {}));
}

// Stretches in which nothing was sent are there, too.
std::vector<TimeSlice> Slices(const LoadOutcome& outcome, const RecordedRun& run,
                              int64_t slice_ns) {
  std::vector<TimeSlice> slices;
  if (run.slices.empty()) return slices;
  const RunAccumulator empty({});
  for (int64_t number = 0; number <= run.slices.rbegin()->first; ++number) {
    const RunWindow window{outcome.window.start_ns + number * slice_ns,
                           outcome.window.start_ns + (number + 1) * slice_ns};
    TimeSlice slice;
    slice.start_ns = outcome.wall_start_ns + number * slice_ns;
    slice.end_ns = slice.start_ns + slice_ns;
    slice.complete = window.end_ns <= outcome.window.end_ns;
    const auto found = run.slices.find(number);
    slice.metrics = (found == run.slices.end() ? empty : found->second).Compute(window);
    slices.push_back(std::move(slice));
  }
  return slices;
}

LoadHooks MakeHooks(Recorder& recorder, Display& display,
                    const std::function<bool()>& interrupted) {
  return {.on_request = [&recorder](FinishedRequest request) { recorder.Push(std::move(request)); },
          .interrupted = interrupted,
          .warn = [&display](const std::string& sentence) { display.Say(sentence); }};
}

absl::StatusOr<std::unique_ptr<Recorder>> MakeRecorder(const RunOptions& options,
                                                       const CellPlan& plan,
                                                       const Surroundings& surroundings,
                                                       const LiveCounts& live) {
  RecorderOptions recorder;
  recorder.slice_ns = static_cast<int64_t>(options.slice_s * kNsPerSecond);
  recorder.profiling_start_ns = &live.profiling_start_ns;
  recorder.source = options.token_source;
  recorder.input_from_usage = options.input_from_usage;
  recorder.tokenizer = surroundings.tokenizer;
  recorder.objectives = options.objectives;
  recorder.keep_for_vllm = options.keep_for_vllm;
  if (options.export_level == ExportLevel::kRecords) {
    recorder.records = plan.folder / FileName(options, ".jsonl");
  }
  if (options.write_outputs) recorder.outputs = plan.folder / "outputs.jsonl";
  return Recorder::Create(std::move(recorder));
}

// Runs of a known number of requests have all prompts ready, if they fit.
size_t SessionsAhead(const CellPlan& plan) {
  if (plan.sessions) return std::numeric_limits<size_t>::max();
  return static_cast<size_t>(plan.load.warmup_requests + kAheadAtLeast +
                             kAheadPerUser * plan.concurrency);
}

// The server is quiet, its cache empty if that was asked for.
void Settle(const RunOptions& options, const Surroundings& surroundings, HttpClient& client,
            Display& display) {
  ServerInfo server(client, {surroundings.targets.front(), options.headers});
  if (options.server_metrics) server.WaitUntilIdle(kIdleWaitS);
  if (!options.reset_prefix_cache) return;
  const absl::Status status = server.ResetPrefixCache();
  if (!status.ok()) display.Say(std::string(status.message()));
}

// Everything that is known once the load is over, and whether it may be quoted.
void FillResult(const RunOptions& options, const CellPlan& plan, const Workload& workload,
                const LoadOutcome& outcome, RecordedRun run, CellResult& result) {
  result.plan = plan.run;
  result.lines = std::move(run.lines);
  result.valid_requests = run.valid_requests;
  result.failed_requests = run.profiling.failed();
  result.interrupted = outcome.interrupted;
  Cell& cell = result.cell;
  cell.scenario = plan.scenario;
  if (plan.concurrency > 0) cell.concurrency = plan.concurrency;
  cell.repetition = plan.repetition;
  cell.tool_version = options.version;
  cell.metrics.merge(run.profiling.Compute(outcome.window));
  if (run.warmup.valid() + run.warmup.failed() > 0) {
    cell.warmup_metrics = run.warmup.Compute({});
  }
  cell.errors = std::move(run.errors);
  cell.was_cancelled = outcome.interrupted;
  cell.environment["model"] = plan.transport.shape.model;
  SetPhases(outcome, cell);
  JudgeClient(options, plan, result);
  JudgeRun(outcome, run, result);
  NoteTokens(run, result);
  NoteErrors(result);
  NotePrompts(workload, outcome, result);
  cell.is_complete = result.complete;
}

}  // namespace

fs::path SummaryFile(const RunOptions& options, const fs::path& folder) {
  return folder / FileName(options, "_aiperf.json");
}

bool IsDone(const CellPlan& plan) {
  Result result;
  const fs::path file = plan.folder / kRunFile;
  std::error_code ignored;
  if (!fs::exists(file, ignored)) return false;
  ReadRunFile(file, result);
  const auto& details = result.plan.details;
  const auto hash = details.find("plan_hash");
  const auto complete = details.find("complete");
  return hash != details.end() && hash->second == plan.hash && complete != details.end() &&
         complete->second == "true";
}

absl::StatusOr<CellResult> RunCell(const RunOptions& options, const CellPlan& plan,
                                   const Surroundings& surroundings, HttpClient& client,
                                   const std::function<bool()>& interrupted) {
  RETURN_IF_ERROR(MakeFolder(plan.folder));
  PromptText text(surroundings.tokenizer, plan.corpus);
  text.set_tokens_per_word(surroundings.tokens_per_word);
  std::optional<InputsWriter> inputs;
  if (options.write_inputs) {
    ASSIGN_OR_RETURN(inputs, InputsWriter::Open(plan.folder / "inputs.json"));
  }
  SessionMaker maker(plan, Workload(plan.workload, plan.transport.shape, std::move(text)),
                     std::move(inputs));
  LiveCounts live;
  ASSIGN_OR_RETURN(std::unique_ptr<Recorder> recorder,
                   MakeRecorder(options, plan, surroundings, live));
  live.planned = plan.sessions.value_or(0);
  CellResult result;
  LoadOutcome outcome;
  {
    Display display(StyleOf(options), plan.Name(), live, plan.load.duration_ns.value_or(0));
    SessionQueue sessions([&maker] { return maker.Next(); }, kAheadBytes, SessionsAhead(plan));
    sessions.WaitUntilFilled();
    Settle(options, surroundings, client, display);
    ServerInfo server(client, {surroundings.targets.front(), options.headers});
    std::optional<Counters> before, after;
    if (options.server_metrics) before = server.ScrapeCounters();
    LoadDriver driver(client, sessions, plan.load, plan.transport,
                      MakeHooks(*recorder, display, interrupted), live);
    outcome = driver.Run();
    if (before) after = server.ScrapeCounters();
    driver.lag().AddMetrics(result.cell.metrics);
    if (before && after) AddCounterMetrics(*before, *after, result.cell.metrics);
  }
  RETURN_IF_ERROR(maker.Finish());
  RecordedRun run = recorder->Finish();
  RETURN_IF_ERROR(run.file_status);
  if (options.slice_s > 0) {
    RETURN_IF_ERROR(WriteAiperfTimeSlices(
        plan.folder / FileName(options, "_aiperf_timeslices.json"),
        Slices(outcome, run, static_cast<int64_t>(options.slice_s * kNsPerSecond))));
  }

  FillResult(options, plan, maker.workload(), outcome, std::move(run), result);
  RETURN_IF_ERROR(WriteFiles(options, plan, result));
  return result;
}

}  // namespace fulgur::bench

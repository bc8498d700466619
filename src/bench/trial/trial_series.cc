#include "bench/trial/trial_series.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "base/status_macros.h"
#include "bench/trial/server_control.h"
#include "fmt/format.h"

namespace fulgur::bench {
namespace {

namespace fs = std::filesystem;

const Variant* FindVariant(const TrialPlan& plan, const std::string& id) {
  for (const Variant& variant : plan.variants) {
    if (variant.id == id) return &variant;
  }
  return nullptr;
}

std::string CellName(const Cell& cell) {
  if (!cell.concurrency) return cell.scenario;
  return fmt::format("{} c{}", cell.scenario, *cell.concurrency);
}

// The metric of every cell that may be quoted, and why of the others.
void AddCells(const RunSummary& summary, const std::string& metric, MeasuredRun& run) {
  for (const CellResult& result : summary.cells) {
    const std::string name = CellName(result.cell);
    run.requests += result.valid_requests + result.failed_requests;
    run.failed += result.failed_requests;
    const auto found = result.cell.metrics.find(metric);
    if (!result.valid()) {
      run.invalid[name] = result.invalid_reasons.front();
    } else if (found == result.cell.metrics.end() || !found->second.avg) {
      run.invalid[name] = fmt::format("there is no {}", metric);
    } else {
      run.values[name] = *found->second.avg;
    }
  }
  for (const std::string& failure : summary.failed_cells) run.invalid.emplace(failure, "not run");
}

class Series {
 public:
  Series(const TrialPlan& plan, const SeriesOptions& options, const SeriesHooks& hooks,
         ServerControl& server)
      : plan_(plan), options_(options), hooks_(hooks), server_(server) {}

  absl::StatusOr<SeriesResult> Run() {
    RETURN_IF_ERROR(MakeRoom());
    for (const std::string& id : SeriesOrder(plan_)) {
      if (hooks_.interrupted() || !result_.ended.ok()) break;
      RETURN_IF_ERROR(Measure(id));
    }
    result_.interrupted = hooks_.interrupted();
    RestoreBase();
    return std::move(result_);
  }

 private:
  // Nothing may answer at the address before the first start: it would be measured instead.
  absl::Status MakeRoom() {
    if (!server_.Answers()) return absl::OkStatus();
    if (!plan_.server.stop.empty()) return server_.Stop();
    return absl::FailedPreconditionError(
        fmt::format("something answers at {} already; stop it, or give the plan a \"stop\" command",
                    plan_.server.url));
  }

  fs::path LogOf(const std::string& name) const {
    return options_.folder / "logs" / (name + ".log");
  }

  // Only a base that has never been up is an error: nothing can be compared with it.
  absl::Status Measure(const std::string& id) {
    const std::string name =
        fmt::format("{:02}-{}", result_.runs.size() + 1, id.empty() ? "base" : id);
    MeasuredRun run;
    run.variant = id;
    hooks_.say(fmt::format("{}: starting the server", name));
    const absl::Status started = StartServer(FindVariant(plan_, id), LogOf(name));
    if (absl::IsCancelled(started)) return absl::OkStatus();
    if (!started.ok()) {
      hooks_.say(fmt::format("{}: did not start: {}", name, std::string(started.message())));
      if (id.empty() && result_.runs.empty()) {
        StopServer();
        return absl::Status(started.code(), fmt::format("the base did not start: {}",
                                                        std::string(started.message())));
      }
      run.not_started = std::string(started.message());
    } else if (!MeasureServer(name, run)) {
      return absl::OkStatus();
    }
    result_.runs.push_back(std::move(run));
    result_.names.push_back(name);
    return absl::OkStatus();
  }

  // False if there is nothing to keep: the run was interrupted before it was through.
  bool MeasureServer(const std::string& name, MeasuredRun& run) {
    hooks_.say(fmt::format("{}: measuring", name));
    const auto summary = hooks_.measure(options_.folder / "runs" / name);
    if (!summary.ok()) {
      run.invalid["the load"] = std::string(summary.status().message());
      hooks_.say(fmt::format("{}: {}", name, std::string(summary.status().message())));
      return !hooks_.interrupted();
    }
    AddCells(*summary, plan_.metric, run);
    return !summary->interrupted;
  }

  absl::Status StartServer(const Variant* variant, const fs::path& log) {
    StopServer();
    RETURN_IF_ERROR(result_.ended);
    up_ = true;
    base_is_ready_ = false;
    RETURN_IF_ERROR(server_.Start(plan_.SettingsOf(variant), log, hooks_.interrupted));
    base_is_ready_ = variant == nullptr;
    return absl::OkStatus();
  }

  // A server that cannot be ended ends the series: the next would not be what it seems.
  void StopServer() {
    if (!up_) return;
    const absl::Status stopped = server_.Stop();
    if (stopped.ok()) {
      up_ = false;
    } else {
      result_.ended = stopped;
    }
  }

  void RestoreBase() {
    if (!options_.leave_base) return StopServer();
    if (base_is_ready_ || !result_.ended.ok()) return;
    hooks_.say("bringing the base back");
    StopServer();
    if (!result_.ended.ok()) return;
    const absl::Status started =
        server_.Start(plan_.SettingsOf(nullptr), LogOf("base-restored"), [] { return false; });
    if (started.ok()) return;
    result_.ended = absl::Status(
        started.code(),
        fmt::format("the base could not be brought back: {}", std::string(started.message())));
  }

  const TrialPlan& plan_;
  const SeriesOptions& options_;
  const SeriesHooks& hooks_;
  ServerControl& server_;
  SeriesResult result_;
  bool up_ = false;  // something was started and not stopped
  bool base_is_ready_ = false;
};

}  // namespace

std::vector<std::string> SeriesOrder(const TrialPlan& plan) {
  std::vector<std::string> ids;
  for (const Variant& variant : plan.variants) ids.push_back(variant.id);
  std::vector<std::string> order = {""};
  for (int64_t round = 0; round < plan.Rounds(); ++round) {
    for (const std::string& id : ids) {
      order.push_back(id);
      order.emplace_back();
    }
    std::reverse(ids.begin(), ids.end());
  }
  return order;
}

absl::StatusOr<SeriesResult> RunSeries(const TrialPlan& plan, const SeriesOptions& options,
                                       const SeriesHooks& hooks) {
  ASSIGN_OR_RETURN(const auto server, ServerControl::Create(plan.server));
  return Series(plan, options, hooks, *server).Run();
}

}  // namespace fulgur::bench

#include "bench/load/run_bench.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <optional>
#include <set>
#include <thread>
#include <utility>

#include "base/status_macros.h"
#include "bench/load/clock.h"
#include "bench/load/estimate.h"
#include "bench/load/random.h"
#include "bench/load/repetitions.h"
#include "bench/load/surroundings.h"
#include "fmt/format.h"

namespace fulgur::bench {
namespace {

namespace fs = std::filesystem;

constexpr double kWorthSayingS = 30.0;
constexpr double kMuchLonger = 3.0;

struct CellChoice {
  const Scenario* scenario;
  int64_t concurrency;
  int32_t repetition;
};

std::vector<int64_t> ConcurrenciesOf(const RunOptions& options, const Scenario& scenario) {
  return scenario.concurrency.empty() ? options.concurrency : scenario.concurrency;
}

std::vector<CellChoice> ListCells(const RunOptions& options) {
  std::vector<CellChoice> cells;
  for (int32_t repetition = 0; repetition < options.repetitions; ++repetition) {
    for (const Scenario& scenario : options.scenarios) {
      for (const int64_t concurrency : ConcurrenciesOf(options, scenario)) {
        cells.push_back({&scenario, concurrency, repetition});
      }
    }
  }
  if (options.order == CellOrder::kConcurrencyMajor) {
    std::stable_sort(cells.begin(), cells.end(), [](const CellChoice& a, const CellChoice& b) {
      return std::pair(a.repetition, a.concurrency) < std::pair(b.repetition, b.concurrency);
    });
  }
  if (options.order == CellOrder::kRandom) {
    RandomStream random(options.seed, "cells");
    for (size_t i = cells.size(); i > 1; --i) std::swap(cells[i - 1], cells[random.Below(i)]);
  }
  return cells;
}

// The folder of a cell, repetitions below it.
fs::path CellFolder(const RunOptions& options, const CellChoice& cell) {
  fs::path folder = options.artifact_dir;
  switch (options.layout) {
    case FolderLayout::kSingle:
      break;
    case FolderLayout::kSweep:
      folder /= fmt::format("concurrency_{}", cell.concurrency);
      break;
    case FolderLayout::kRates:
      folder /= fmt::format("rate_{:.4g}", cell.scenario->rate.value_or(0.0));
      break;
    case FolderLayout::kSuite:
      folder /= fmt::format("{}-c{}", cell.scenario->id, cell.concurrency);
      break;
  }
  return folder;
}

fs::path FolderOf(const RunOptions& options, const CellChoice& cell) {
  const fs::path folder = CellFolder(options, cell);
  return options.repetitions > 1 ? RunFolder(folder, cell.repetition) : folder;
}

std::set<fs::path> RepeatedFolders(const RunOptions& options) {
  std::set<fs::path> folders;
  for (const CellChoice& cell : ListCells(options)) folders.insert(CellFolder(options, cell));
  return folders;
}

void Cooldown(double seconds, const RunHooks& hooks) {
  const int64_t end = MonotonicNs() + static_cast<int64_t>(seconds * 1e9);
  while (MonotonicNs() < end && !hooks.interrupted()) {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
}

// What the whole run may take, before it begins.
void SayEstimate(const std::vector<CellChoice>& cells, const RunHooks& hooks) {
  double seconds = 0.0;
  size_t unknown = 0;
  for (const CellChoice& cell : cells) {
    const auto estimate = EstimateSeconds(*cell.scenario, cell.concurrency, Pace());
    seconds += estimate.value_or(0.0);
    unknown += estimate ? 0 : 1;
  }
  if (unknown == cells.size() || seconds < kWorthSayingS) return;
  hooks.say(fmt::format("{} cells will take about {} at 30 ms a token{}", cells.size(),
                        RoughTime(seconds),
                        unknown > 0 ? fmt::format(", and {} of them longer", unknown) : ""));
}

// Says once when a cell takes much longer than expected; goes on all the same.
class Watch {
 public:
  Watch(std::optional<double> expected_s, const RunHooks& hooks) : hooks_(hooks) {
    if (expected_s) limit_s_ = std::max(kWorthSayingS, kMuchLonger * *expected_s);
  }

  bool Interrupted() {
    const double elapsed_s = static_cast<double>(MonotonicNs() - start_ns_) / 1e9;
    if (limit_s_ && elapsed_s > *limit_s_) {
      hooks_.say(
          fmt::format("warning: this cell has taken {} already, three times as long as "
                      "expected",
                      RoughTime(elapsed_s)));
      limit_s_.reset();
    }
    return hooks_.interrupted();
  }

 private:
  const RunHooks& hooks_;
  const int64_t start_ns_ = MonotonicNs();
  std::optional<double> limit_s_;
};

absl::StatusOr<CellResult> MeasureWatched(const RunOptions& options, const CellPlan& plan,
                                          const Surroundings& surroundings, const RunHooks& hooks,
                                          std::optional<double> expected_s) {
  Watch watch(expected_s, hooks);
  RunHooks watched = hooks;
  watched.interrupted = [&watch] { return watch.Interrupted(); };
  return MeasureCell(options, plan, surroundings, watched);
}

}  // namespace

bool RunSummary::complete() const {
  if (interrupted || !failed_cells.empty()) return false;
  return std::all_of(cells.begin(), cells.end(), [](const CellResult& cell) {
    return cell.complete && cell.valid() && cell.failed_requests == 0;
  });
}

absl::StatusOr<CellResult> MeasureCell(const RunOptions& options, const CellPlan& plan,
                                       const Surroundings& surroundings, const RunHooks& hooks) {
  ASSIGN_OR_RETURN(auto client, HttpClient::Create(surroundings.targets, options.http));
  return RunCell(options, plan, surroundings, *client, hooks.interrupted);
}

absl::StatusOr<RunSummary> RunBench(const RunOptions& options, const RunHooks& hooks) {
  ASSIGN_OR_RETURN(const Surroundings surroundings, LookAround(options, hooks.say));
  RunSummary summary;
  const std::vector<CellChoice> cells = ListCells(options);
  SayEstimate(cells, hooks);
  Pace pace;
  for (size_t i = 0; i < cells.size() && !hooks.interrupted(); ++i) {
    ASSIGN_OR_RETURN(CellPlan plan,
                     ResolveCell(options, *cells[i].scenario, cells[i].concurrency, surroundings));
    plan.repetition = cells[i].repetition;
    plan.run.trial = cells[i].repetition;
    plan.folder = FolderOf(options, cells[i]);
    if (!options.force && IsDone(plan)) {
      hooks.say(fmt::format("{}: already there, skipped (--force repeats it)", plan.Name()));
      ++summary.skipped;
      continue;
    }
    if (i > 0 && options.cooldown_s > 0) Cooldown(options.cooldown_s, hooks);
    const auto expected = EstimateSeconds(*cells[i].scenario, cells[i].concurrency, pace);
    auto result = MeasureWatched(options, plan, surroundings, hooks, expected);
    if (!result.ok()) {
      summary.failed_cells.push_back(
          fmt::format("{}: {}", plan.Name(), std::string(result.status().message())));
      hooks.say("error: " + summary.failed_cells.back());
      continue;
    }
    hooks.on_cell(*result);
    pace.Learn(result->cell.metrics);
    summary.cells.push_back(std::move(*result));
  }
  summary.interrupted = hooks.interrupted();
  if (options.repetitions > 1) {
    for (const fs::path& folder : RepeatedFolders(options)) {
      RETURN_IF_ERROR(WriteRepetitions(options, folder));
    }
  }
  return summary;
}

}  // namespace fulgur::bench

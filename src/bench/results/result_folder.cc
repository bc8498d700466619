#include "bench/results/result_folder.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <set>
#include <utility>

#include "base/status_macros.h"
#include "bench/results/ds4_reader.h"
#include "bench/results/result_reader.h"
#include "bench/results/scenarios.h"
#include "bench/results/sha256.h"
#include "bench/results/strings.h"
#include "fmt/format.h"
#include "io/json.h"
#include "io/mapped_file.h"

namespace fulgur::bench {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
constexpr int kDeepest = 8;
constexpr size_t kMostFiles = 10'000;

// Folders beside or inside a cell that repeat its numbers. profile_runs holds the single runs of a
// repeated cell and is entered only where the cell has no summary of its own.
constexpr std::array<std::string_view, 5> kOtherFolders = {"phases", "logs", "aggregate",
                                                           "sweep_aggregate", "profile_runs"};

constexpr std::array<std::string_view, 15> kOtherFiles = {"inputs.json",
                                                          "outputs.json",
                                                          "fulgur_run.json",
                                                          "server_metrics_export.json",
                                                          "run_config.json",
                                                          "phase_manifest.json",
                                                          "benchmark_args.json",
                                                          "benchmark_percentile.json",
                                                          "workload_throughput.json",
                                                          "workload_timeline.json",
                                                          "server_metrics.json",
                                                          "gpu_telemetry.json",
                                                          "profile_export_aiperf_timeslices.json",
                                                          ".aiperf_results_ready.json",
                                                          "compile_commands.json"};

template <size_t N>
bool Contains(const std::array<std::string_view, N>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// Most tables beside results repeat them.
bool BeginsDs4Table(const fs::path& file) {
  const auto mapped = io::MappedFile::Open(file.string());
  if (!mapped.ok()) return false;
  std::string_view text = mapped->text();
  if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
  return IsDs4Table(text);
}

bool MayHoldResult(const fs::path& file) {
  const std::string name = file.filename().string();
  if (name.starts_with('.') || Contains(kOtherFiles, name)) return false;
  if (name.ends_with(".pytorch.json") || name.ends_with("_timeslices.json")) return false;
  if (name.ends_with("_details.jsonl") || name.starts_with("util-")) return false;
  if (name.ends_with(".jsonl")) {
    // SGLang's results; aiperf's requests lie beside their summary.
    return !name.starts_with("profile_export") && name != "gpu_telemetry_export.jsonl" &&
           !fs::exists(fs::path(file).replace_extension(".json"));
  }
  return name.ends_with(".json") || (name.ends_with(".csv") && BeginsDs4Table(file));
}

class Walk {
 public:
  explicit Walk(std::vector<std::string>& problems) : problems_(problems) {}

  void Enter(const fs::path& folder, int depth) {
    std::error_code error;
    std::vector<fs::path> entries;
    for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
      entries.push_back(it->path());
    }
    if (error) {
      problems_.push_back(fmt::format("{} cannot be listed: {}", folder.string(), error.message()));
    }
    std::sort(entries.begin(), entries.end());
    const bool has_summary = fs::exists(folder / "profile_export_aiperf.json", error);
    for (const fs::path& entry : entries) Visit(entry, depth, has_summary);
  }

  std::vector<fs::path> TakeFiles() { return std::move(files_); }

 private:
  void Visit(const fs::path& entry, int depth, bool has_summary) {
    std::error_code error;
    if (fs::is_symlink(entry, error) && fs::is_directory(entry, error)) return;
    const std::string name = entry.filename().string();
    if (fs::is_directory(entry, error)) {
      const bool single_runs = name == "profile_runs" && !has_summary;
      if (name.starts_with('.') || (Contains(kOtherFolders, name) && !single_runs)) return;
      if (depth == kDeepest) {
        problems_.push_back(fmt::format("{} lies too deep and was not read", entry.string()));
        return;
      }
      Enter(entry, depth + 1);
      return;
    }
    if (!fs::is_regular_file(entry, error) || !MayHoldResult(entry)) return;
    // A folder with aiperf's summary holds one cell; its other files are part of it.
    if (has_summary && name != "profile_export_aiperf.json") return;
    if (files_.size() == kMostFiles) {
      problems_.push_back(
          fmt::format("more than {} files; {} was not read", kMostFiles, entry.string()));
      return;
    }
    files_.push_back(entry);
  }

  std::vector<std::string>& problems_;
  std::vector<fs::path> files_;
};

int64_t ModifiedSeconds(const fs::path& file) {
  std::error_code error;
  const auto time = fs::last_write_time(file, error);
  if (error) return 0;
  return std::chrono::duration_cast<std::chrono::seconds>(time.time_since_epoch()).count();
}

std::string HashOf(const fs::path& file) {
  const auto mapped = io::MappedFile::Open(file.string());
  return mapped.ok() ? Sha256Hex(mapped->text()) : "";
}

// A rate that is offered tells open-loop cells apart, whatever limit they have; without one, any
// number of requests may be under way.
void FillRate(Cell& cell, const RunPlan& plan) {
  for (const PlannedPhase& phase : plan.phases) {
    if (phase.name != "profiling" || !(phase.rate.value_or(0.0) > 0)) continue;
    cell.metrics["fulgur_offered_request_rate"] = Scalar(*phase.rate, "requests/sec");
    ScenarioName name = SplitScenario(cell.scenario);
    name.rate = phase.rate;
    cell.scenario = JoinScenario(name);
    if (!cell.concurrency) cell.concurrency = kUnlimited;
  }
}

// What a manifest says overrides all; else what the file says comes first, then its path, then its
// lengths.
void FillPlace(const std::string& relative, const PathHints& stated, Result& result) {
  Cell& cell = result.cell;
  if (!stated.scenario.empty()) cell.scenario = stated.scenario;
  if (stated.concurrency) cell.concurrency = stated.concurrency;
  const PathHints hints = HintsOf(relative);
  if (cell.scenario.empty()) cell.scenario = hints.scenario;
  if (cell.scenario.empty()) cell.scenario = ScenarioByLengths(result);
  if (cell.scenario.empty()) cell.scenario = "custom";
  if (!cell.concurrency) cell.concurrency = hints.concurrency;
  FillRate(cell, result.plan);
}

void AddFile(const fs::path& file, const std::string& relative, const PathHints& stated,
             SystemResults& found) {
  auto read = ReadResultFile(file);
  if (!read.ok()) {
    found.problems.push_back(Sentence(read.status()) + "; it was skipped");
    return;
  }
  const std::string hash = HashOf(file);
  for (Result& result : *read) {
    FillPlace(relative, stated, result);
    found.problems.insert(found.problems.end(), result.problems.begin(), result.problems.end());
    const Cell& cell = result.cell;
    FoundResult entry;
    entry.provenance = {file.string(), std::string(KindName(cell.kind)), cell.tool_version, hash};
    entry.modified_s = ModifiedSeconds(file);
    entry.repeated = relative.find("profile_runs/") != std::string::npos;
    const bool open_loop = cell.metrics.contains("fulgur_offered_request_rate");
    if (!cell.concurrency || (*cell.concurrency < 1 && !open_loop)) {
      found.problems.push_back(fmt::format(
          "{} says neither a concurrency nor a request rate, and its path (such as chat-c4) does "
          "not either; it was skipped",
          file.string()));
      continue;
    }
    entry.result = std::move(result);
    found.results.push_back(std::move(entry));
  }
}

void AddManifestEntry(const JsonObject& entry, const fs::path& folder, const std::string& system,
                      SystemResults& found) {
  const std::string owner = TextAt(entry, "system");
  const std::string path = TextAt(entry, "path");
  if (!owner.empty() && owner != system) return;
  if (path.empty()) {
    found.problems.push_back("an entry of the manifest lacks \"path\"; it was skipped");
    return;
  }
  AddFile(folder / path, path, {TextAt(entry, "scenario"), IntegerAt(entry, "concurrency")}, found);
}

// The path below the folder; where the folder is a cell itself, with its name in front.
std::string PlaceOf(const fs::path& file, const fs::path& folder) {
  std::error_code error;
  const fs::path below = fs::relative(file, folder, error);
  if (below.has_parent_path()) return below.string();
  return ((folder / "").parent_path().filename() / below).string();
}

// A single file: a manifest, a reference, or one result.
absl::Status AddSingleFile(const fs::path& file, const std::string& system, SystemResults& found) {
  const auto document = io::JsonDocument::ReadFile(file.string());
  JsonObject root;
  if (document.ok() && document->root().get(root) == simdjson::SUCCESS) {
    if (TextAt(root, "format") == kManifestFormat) {
      for (const JsonObject& entry : ObjectsAt(root, "results")) {
        AddManifestEntry(entry, file.parent_path(), system, found);
      }
      return absl::OkStatus();
    }
    if (TextAt(root, "format") == kReferenceFormat) found.reference = ReadReferenceFacts(root);
  }
  AddFile(file, file.filename().string(), PathHints(), found);
  return absl::OkStatus();
}

}  // namespace

std::vector<fs::path> CandidateFiles(const fs::path& folder, std::vector<std::string>& problems) {
  Walk walk(problems);
  walk.Enter(folder, 0);
  return walk.TakeFiles();
}

absl::StatusOr<SystemResults> FindResults(const fs::path& path, const std::string& system) {
  std::error_code error;
  SystemResults found;
  if (fs::is_directory(path, error)) {
    for (const fs::path& file : CandidateFiles(path, found.problems)) {
      AddFile(file, PlaceOf(file, path), PathHints(), found);
    }
  } else if (fs::exists(path, error)) {
    RETURN_IF_ERROR(AddSingleFile(path, system, found));
  } else {
    return absl::NotFoundError(
        fmt::format("--system {}: {} is neither a folder nor a file", system, path.string()));
  }
  if (found.results.empty()) {
    return absl::NotFoundError(fmt::format(
        "--system {}: {} holds no readable result{}", system, path.string(),
        found.problems.empty() ? "" : "; the first problem: " + found.problems.front()));
  }
  return found;
}

}  // namespace fulgur::bench

#include "bench/load/run_bench.h"

#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <optional>
#include <thread>
#include <utility>

#include "base/status_macros.h"
#include "bench/load/clock.h"
#include "bench/load/random.h"
#include "fmt/format.h"

namespace fulgur::bench {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kSpareFiles = 64;
constexpr int64_t kProbeWords = 64;
constexpr std::string_view kChatPath = "/v1/chat/completions";
constexpr std::string_view kCompletionsPath = "/v1/completions";

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

fs::path FolderOf(const RunOptions& options, const CellChoice& cell) {
  fs::path folder = options.artifact_dir;
  switch (options.layout) {
    case FolderLayout::kSingle:
      break;
    case FolderLayout::kSweep:
      folder /= fmt::format("concurrency_{}", cell.concurrency);
      break;
    case FolderLayout::kSuite:
      folder /= fmt::format("{}-c{}", cell.scenario->id, cell.concurrency);
      break;
  }
  if (options.repetitions > 1) {
    folder /= fmt::format("profile_runs/run_{:04}", cell.repetition + 1);
  }
  return folder;
}

// One connection a request, and some files besides.
absl::Status AllowFiles(const RunOptions& options) {
  int64_t most = 1;
  for (const Scenario& scenario : options.scenarios) {
    for (const int64_t concurrency : ConcurrenciesOf(options, scenario)) {
      most = std::max(most, concurrency);
    }
  }
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
  if (static_cast<int64_t>(limit.rlim_max) >= most + kSpareFiles) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      fmt::format("--concurrency {}: this process may open {} files only; raise it with ulimit -n",
                  most, limit.rlim_max));
}

// "http://host/v1" and a whole endpoint are taken as the base address, too.
absl::StatusOr<std::vector<HttpTarget>> ParseTargets(const std::vector<std::string>& urls) {
  std::vector<HttpTarget> targets;
  for (const std::string& url : urls) {
    ASSIGN_OR_RETURN(HttpTarget target, ParseUrl(url));
    for (const std::string_view ending : {kChatPath, kCompletionsPath, std::string_view("/v1")}) {
      if (!target.path.ends_with(ending)) continue;
      target.path.resize(target.path.size() - ending.size());
      break;
    }
    targets.push_back(std::move(target));
  }
  return targets;
}

absl::StatusOr<std::optional<text::Tokenizer>> ReadTokenizer(const std::string& name) {
  if (name.empty() || name == "server") return std::optional<text::Tokenizer>();
  fs::path path = name;
  std::error_code ignored;
  if (fs::is_directory(path, ignored)) path /= "tokenizer.json";
  if (!fs::exists(path, ignored)) {
    return absl::NotFoundError(fmt::format(
        "--tokenizer {}: no such file or folder; give a folder with tokenizer.json, since names of "
        "a hub are not fetched, or leave the flag out and let the server count",
        name));
  }
  ASSIGN_OR_RETURN(text::Tokenizer tokenizer, text::Tokenizer::Load(path));
  return std::optional<text::Tokenizer>(std::move(tokenizer));
}

absl::Status ChooseModel(const std::vector<ServedModel>& models, const RunHooks& hooks,
                         Surroundings& surroundings) {
  std::string& model = surroundings.shape.model;
  if (model.empty()) {
    if (models.size() != 1) {
      return absl::InvalidArgumentError(
          fmt::format("--model is missing, and the server has {} models", models.size()));
    }
    model = models.front().name;
  }
  for (const ServedModel& served : models) {
    if (served.name != model) continue;
    surroundings.max_model_len = served.max_model_len;
    return absl::OkStatus();
  }
  if (!models.empty()) {
    hooks.say(fmt::format("warning: the server does not list the model {}; it has {}", model,
                          models.front().name));
  }
  return absl::OkStatus();
}

absl::Status AskForModels(const RunOptions& options, ServerInfo& server, const RunHooks& hooks,
                          Surroundings& surroundings) {
  const auto models = server.Models();
  if (models.ok()) return ChooseModel(*models, hooks, surroundings);
  if (!options.shape.model.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      fmt::format("--model is missing, and the server does not say: {}",
                  std::string(models.status().message())));
}

// A server that knows only the old name of the output limit says so.
bool WantsMaxTokens(const ServerInfo::Probe& probe) {
  return probe.status == 400 && probe.body.find("max_completion_tokens") != std::string::npos;
}

// One request before everything: is it answered, and how many tokens does the template add?
void ProbeServer(const RunOptions& options, ServerInfo& server, const RunHooks& hooks,
                 Surroundings& surroundings) {
  const PromptText text(surroundings.tokenizer, Corpus::kWords);
  RandomStream random(options.seed, "probe");
  const SizedText words = text.Make(kProbeWords, random);
  const HttpTarget& target = surroundings.targets.front();
  std::string path = target.path;
  if (options.endpoint_path.empty()) {
    path += surroundings.shape.endpoint == Endpoint::kChat ? kChatPath : kCompletionsPath;
  } else {
    path += options.endpoint_path.starts_with('/') ? "" : "/";
    path += options.endpoint_path;
  }
  auto probe = server.Ask(surroundings.shape, path, words.text);
  if (probe.ok() && WantsMaxTokens(*probe)) {
    surroundings.shape.legacy_max_tokens = true;
    probe = server.Ask(surroundings.shape, path, words.text);
  }
  if (!probe.ok()) {
    hooks.say(fmt::format("warning: the first request failed: {}",
                          std::string(probe.status().message())));
  } else if (probe->status != 200) {
    hooks.say(fmt::format("warning: the server answers {} to the first request: {}", probe->status,
                          probe->body.substr(0, 300)));
  } else if (!probe->prompt_tokens) {
    hooks.say("warning: the server sends no usage: token counts need --tokenizer");
  } else if (surroundings.tokenizer) {
    surroundings.template_overhead = std::max<int64_t>(0, *probe->prompt_tokens - words.tokens);
  } else {
    surroundings.tokens_per_word =
        static_cast<double>(*probe->prompt_tokens) / static_cast<double>(kProbeWords);
  }
}

absl::StatusOr<CellResult> RunOne(const RunOptions& options, const CellPlan& plan,
                                  const Surroundings& surroundings, const RunHooks& hooks) {
  ASSIGN_OR_RETURN(auto client, HttpClient::Create(surroundings.targets, options.http));
  return RunCell(options, plan, surroundings, *client, hooks.interrupted);
}

void Cooldown(double seconds, const RunHooks& hooks) {
  const int64_t end = MonotonicNs() + static_cast<int64_t>(seconds * 1e9);
  while (MonotonicNs() < end && !hooks.interrupted()) {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
}

}  // namespace

bool RunSummary::complete() const {
  if (interrupted || !failed_cells.empty()) return false;
  return std::all_of(cells.begin(), cells.end(), [](const CellResult& cell) {
    return cell.complete && cell.valid() && cell.failed_requests == 0;
  });
}

absl::StatusOr<RunSummary> RunBench(const RunOptions& options, const RunHooks& hooks) {
  RETURN_IF_ERROR(AllowFiles(options));
  Surroundings surroundings;
  surroundings.shape = options.shape;
  ASSIGN_OR_RETURN(surroundings.targets, ParseTargets(options.urls));
  ASSIGN_OR_RETURN(surroundings.tokenizer, ReadTokenizer(options.tokenizer));
  ASSIGN_OR_RETURN(auto client, HttpClient::Create(surroundings.targets, options.http));
  ServerInfo server(*client, {surroundings.targets.front(), options.headers});
  RETURN_IF_ERROR(server.Wait(options.wait_for_server_s));
  RETURN_IF_ERROR(AskForModels(options, server, hooks, surroundings));
  if (options.corrected) ProbeServer(options, server, hooks, surroundings);

  RunSummary summary;
  const std::vector<CellChoice> cells = ListCells(options);
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
    const std::string name = plan.Name();
    auto result = RunOne(options, plan, surroundings, hooks);
    if (!result.ok()) {
      summary.failed_cells.push_back(
          fmt::format("{}: {}", name, std::string(result.status().message())));
      hooks.say("error: " + summary.failed_cells.back());
      continue;
    }
    hooks.on_cell(*result);
    summary.cells.push_back(std::move(*result));
  }
  summary.interrupted = hooks.interrupted();
  return summary;
}

}  // namespace fulgur::bench

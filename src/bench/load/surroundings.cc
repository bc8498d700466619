#include "bench/load/surroundings.h"

#include <sys/resource.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "base/status_macros.h"
#include "bench/load/random.h"
#include "fmt/format.h"

namespace fulgur::bench {
namespace {

namespace fs = std::filesystem;

using Say = std::function<void(const std::string&)>;

constexpr int64_t kProbeWords = 64;
constexpr int64_t kSpareFiles = 64;

// One connection a request, and some files besides.
absl::Status AllowFiles(const RunOptions& options) {
  int64_t most = 1;
  for (const Scenario& scenario : options.scenarios) {
    const auto& own = scenario.concurrency;
    for (const int64_t concurrency : own.empty() ? options.concurrency : own) {
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
    for (const std::string_view ending :
         {EndpointPath(Endpoint::kChat), EndpointPath(Endpoint::kCompletions),
          EndpointPath(Endpoint::kResponses), std::string_view("/v1")}) {
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

absl::Status ChooseModel(const std::vector<ServedModel>& models, const Say& say,
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
    say(fmt::format("warning: the server does not list the model {}; it has {}", model,
                    models.front().name));
  }
  return absl::OkStatus();
}

absl::Status AskForModels(const RunOptions& options, ServerInfo& server, const Say& say,
                          Surroundings& surroundings) {
  const auto models = server.Models();
  if (models.ok()) return ChooseModel(*models, say, surroundings);
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
void ProbeServer(const RunOptions& options, ServerInfo& server, const Say& say,
                 Surroundings& surroundings) {
  const PromptText text(surroundings.tokenizer, Corpus::kWords);
  RandomStream random(options.seed, "probe");
  const SizedText words = text.Make(kProbeWords, random);
  const HttpTarget& target = surroundings.targets.front();
  std::string path = target.path;
  if (options.endpoint_path.empty()) {
    path += EndpointPath(surroundings.shape.endpoint);
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
    say(fmt::format("warning: the first request failed: {}",
                    std::string(probe.status().message())));
  } else if (probe->status != 200) {
    say(fmt::format("warning: the server answers {} to the first request: {}", probe->status,
                    probe->body.substr(0, 300)));
  } else if (!probe->prompt_tokens) {
    say("warning: the server sends no usage: token counts need --tokenizer");
  } else if (surroundings.tokenizer) {
    surroundings.template_overhead = std::max<int64_t>(0, *probe->prompt_tokens - words.tokens);
  } else {
    surroundings.tokens_per_word =
        static_cast<double>(*probe->prompt_tokens) / static_cast<double>(kProbeWords);
  }
}

}  // namespace

absl::StatusOr<Surroundings> LookAround(const RunOptions& options, const Say& say) {
  RETURN_IF_ERROR(AllowFiles(options));
  Surroundings surroundings;
  surroundings.shape = options.shape;
  ASSIGN_OR_RETURN(surroundings.targets, ParseTargets(options.urls));
  ASSIGN_OR_RETURN(surroundings.tokenizer, ReadTokenizer(options.tokenizer));
  ASSIGN_OR_RETURN(auto client, HttpClient::Create(surroundings.targets, options.http));
  ServerInfo server(*client, {surroundings.targets.front(), options.headers});
  RETURN_IF_ERROR(server.Wait(options.wait_for_server_s));
  RETURN_IF_ERROR(AskForModels(options, server, say, surroundings));
  if (options.corrected) ProbeServer(options, server, say, surroundings);
  return surroundings;
}

}  // namespace fulgur::bench

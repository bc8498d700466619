#include "bench/load/server_info.h"

#include <algorithm>
#include <thread>

#include "absl/strings/numbers.h"
#include "base/status_macros.h"
#include "bench/load/clock.h"
#include "fmt/format.h"
#include "simdjson.h"

namespace fulgur::bench {
namespace {

constexpr double kShortS = 5.0;
constexpr double kProbeS = 120.0;

void Sleep(double seconds) { std::this_thread::sleep_for(std::chrono::duration<double>(seconds)); }

double Get(const Counters& counters, const std::string& name) {
  const auto found = counters.find(name);
  return found == counters.end() ? 0.0 : found->second;
}

// The value of a label in `{a="x",b="y"}`.
std::string_view Label(std::string_view labels, std::string_view name) {
  const std::string key = fmt::format("{}=\"", name);
  const size_t at = labels.find(key);
  if (at == std::string_view::npos) return {};
  labels.remove_prefix(at + key.size());
  return labels.substr(0, labels.find('"'));
}

}  // namespace

absl::StatusOr<SimpleAnswer> ServerInfo::Send(const std::string& method, const std::string& path,
                                              std::string body, double limit_s) {
  HttpCall call;
  call.method = method;
  call.path = path;
  call.headers = address_.headers;
  call.body = std::move(body);
  call.timeout_ns = static_cast<int64_t>(limit_s * 1e9);
  return Fetch(client_, std::move(call));
}

absl::Status ServerInfo::Wait(double limit_s) {
  const int64_t end = MonotonicNs() + static_cast<int64_t>(limit_s * 1e9);
  for (;;) {
    const auto answer = Send("GET", address_.target.path + "/v1/models", "", kShortS);
    if (answer.ok() && answer->status < 500) return absl::OkStatus();
    if (MonotonicNs() >= end) {
      const std::string why = answer.ok() ? fmt::format("it answers {}", answer->status)
                                          : std::string(answer.status().message());
      return absl::UnavailableError(
          fmt::format("no server at {}:{}: {}", address_.target.host, address_.target.port, why));
    }
    Sleep(0.5);
  }
}

absl::StatusOr<std::vector<ServedModel>> ServerInfo::Models() {
  ASSIGN_OR_RETURN(const SimpleAnswer answer,
                   Send("GET", address_.target.path + "/v1/models", "", kShortS));
  simdjson::dom::parser parser;
  simdjson::dom::element root;
  simdjson::dom::array data;
  std::vector<ServedModel> models;
  if (parser.parse(answer.body).get(root) != simdjson::SUCCESS ||
      root["data"].get(data) != simdjson::SUCCESS) {
    return absl::NotFoundError(
        fmt::format("/v1/models answers {} without a list of models", answer.status));
  }
  for (const simdjson::dom::element element : data) {
    std::string_view name;
    if (element["id"].get(name) != simdjson::SUCCESS) continue;
    ServedModel model{std::string(name), std::nullopt};
    int64_t length = 0;
    if (element["max_model_len"].get(length) == simdjson::SUCCESS && length > 0) {
      model.max_model_len = length;
    }
    models.push_back(std::move(model));
  }
  return models;
}

Counters ParseCounters(std::string_view text) {
  Counters counters;
  while (!text.empty()) {
    std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    if (line.empty() || line[0] == '#') continue;
    const size_t name_end = line.find_first_of("{ ");
    if (name_end == std::string_view::npos) continue;
    std::string name(line.substr(0, name_end));
    std::string_view rest = line.substr(name_end);
    if (rest.starts_with('{')) {
      const size_t close = rest.rfind('}');
      if (close == std::string_view::npos) continue;
      const std::string_view position = Label(rest.substr(0, close), "position");
      if (!position.empty()) name += fmt::format("[{}]", position);
      rest.remove_prefix(close + 1);
    }
    double value = 0.0;
    rest.remove_prefix(std::min(rest.find_first_not_of(' '), rest.size()));
    if (absl::SimpleAtod(std::string(rest.substr(0, rest.find(' '))), &value)) {
      counters[name] += value;
    }
  }
  return counters;
}

std::optional<Counters> ServerInfo::ScrapeCounters() {
  const auto answer = Send("GET", address_.target.path + "/metrics", "", kShortS);
  if (!answer.ok() || answer->status != 200) return std::nullopt;
  Counters counters = ParseCounters(answer->body);
  if (counters.empty()) return std::nullopt;
  return counters;
}

void ServerInfo::WaitUntilIdle(double limit_s) {
  const int64_t end = MonotonicNs() + static_cast<int64_t>(limit_s * 1e9);
  while (MonotonicNs() < end) {
    const auto counters = ScrapeCounters();
    if (!counters ||
        Get(*counters, "vllm:num_requests_running") + Get(*counters, "vllm:num_requests_waiting") ==
            0.0) {
      return;
    }
    Sleep(0.1);
  }
}

absl::Status ServerInfo::ResetPrefixCache() {
  ASSIGN_OR_RETURN(const SimpleAnswer answer,
                   Send("POST", address_.target.path + "/reset_prefix_cache", "", kProbeS));
  if (answer.status == 200) return absl::OkStatus();
  return absl::UnimplementedError(
      fmt::format("POST /reset_prefix_cache answers {}; vLLM has it in development mode only "
                  "(VLLM_SERVER_DEV_MODE=1)",
                  answer.status));
}

absl::StatusOr<ServerInfo::Probe> ServerInfo::Ask(RequestShape shape, const std::string& path,
                                                  const std::string& text) {
  shape.streaming = false;
  shape.extra.erase("min_tokens");
  HttpCall call;
  call.path = path;
  call.headers = address_.headers;
  call.headers.emplace_back("Content-Type", "application/json");
  call.body = MakeBody(shape, {{"user", text}}, 1);
  call.timeout_ns = static_cast<int64_t>(kProbeS * 1e9);
  ASSIGN_OR_RETURN(SimpleAnswer answer, Fetch(client_, std::move(call)));
  Probe probe{answer.status, std::move(answer.body), std::nullopt};
  simdjson::dom::parser parser;
  simdjson::dom::element root;
  int64_t tokens = 0;
  if (parser.parse(probe.body).get(root) != simdjson::SUCCESS) return probe;
  for (const char* const name : {"prompt_tokens", "input_tokens"}) {
    if (root["usage"][name].get(tokens) == simdjson::SUCCESS) probe.prompt_tokens = tokens;
  }
  return probe;
}

void AddCounterMetrics(const Counters& before, const Counters& after, MetricMap& metrics) {
  const auto difference = [&](const std::string& name) -> std::optional<double> {
    const auto from = before.find(name);
    const auto to = after.find(name);
    // A counter that went down tells of a restart: nothing can be said.
    if (from == before.end() || to == after.end() || to->second < from->second) return std::nullopt;
    return to->second - from->second;
  };
  const auto rounds = difference("vllm:spec_decode_num_drafts_total");
  const auto drafted = difference("vllm:spec_decode_num_draft_tokens_total");
  const auto accepted = difference("vllm:spec_decode_num_accepted_tokens_total");
  if (rounds && accepted && *rounds > 0) {
    metrics["spec_decode_acceptance_length"] = Scalar(1.0 + *accepted / *rounds, "tokens");
    for (int position = 0;; ++position) {
      const auto count = difference(
          fmt::format("vllm:spec_decode_num_accepted_tokens_per_pos_total[{}]", position));
      if (!count) break;
      metrics[fmt::format("fulgur_acceptance_rate_position_{}", position + 1)] =
          Scalar(*count / *rounds, "ratio");
    }
  }
  if (drafted && accepted && *drafted > 0) {
    metrics["spec_decode_draft_acceptance_rate"] = Scalar(*accepted / *drafted, "ratio");
    metrics["total_draft_tokens"] = Scalar(*drafted, "tokens");
    metrics["total_accepted_draft_tokens"] = Scalar(*accepted, "tokens");
  }
  const auto queries = difference("vllm:prefix_cache_queries_total");
  const auto hits = difference("vllm:prefix_cache_hits_total");
  if (queries && hits && *queries > 0) {
    metrics["fulgur_prefix_cache_hit_rate"] = Scalar(*hits / *queries, "ratio");
  }
}

}  // namespace fulgur::bench

#include "server/generation_endpoint.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <charconv>
#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "base/status_macros.h"
#include "server/chat_request.h"
#include "server/completion_request.h"
#include "server/random_id.h"
#include "server/request_fields.h"
#include "text/utf8.h"

namespace fulgur::server {
namespace {

// One rank serves all: a request that names another is refused, one that names none is not.
absl::Status CheckRank(const HttpRequest& request) {
  const std::string* header = FindHeader(request.headers, "X-data-parallel-rank");
  if (header == nullptr) return absl::OkStatus();
  int64_t rank = 0;
  auto [end, error] = std::from_chars(header->data(), header->data() + header->size(), rank);
  bool is_number = error == std::errc() && end == header->data() + header->size();
  if (!is_number || rank == 0) return absl::OkStatus();
  return RuleError(fmt::format("data_parallel_rank {} is out of range [0, 1).", rank),
                   "data_parallel_rank");
}

std::string Shortened(std::string_view text, int64_t limit) {
  if (limit < 0 || text.size() <= static_cast<size_t>(limit)) return std::string(text);
  return text::RepairUtf8(text.substr(0, static_cast<size_t>(limit))) + "...";
}

}  // namespace

void GenerationEndpoint::Chat(Call call) {
  static constexpr Kind kKind{MakeChatJob, MakeChatAnswer, "chatcmpl-"};
  Handle(kKind, std::move(call));
}

void GenerationEndpoint::Completion(Call call) {
  static constexpr Kind kKind{MakeCompletionJob, MakeCompletionAnswer, "cmpl-"};
  Handle(kKind, std::move(call));
}

// What can be said without reading the body.
absl::Status GenerationEndpoint::Admit(const HttpRequest& request) const {
  RETURN_IF_ERROR(CheckContentType(request));
  if (stopping_) return OverloadedError("The server is shutting down.");
  if (!core_.engine().Health().ok()) {
    return EngineError("The server had an error while processing your request.");
  }
  return CheckRank(request);
}

void GenerationEndpoint::Handle(const Kind& kind, Call call) {
  absl::Status admitted = Admit(call.request);
  if (!admitted.ok()) return call.response->Send(ToErrorResponse(admitted));
  auto work = [this, &kind](std::string body) -> absl::StatusOr<Job> {
    ASSIGN_OR_RETURN(RequestFields fields, RequestFields::Parse(std::move(body)));
    return kind.make_job(core_.serving(), fields);
  };
  core_.Offload(std::move(call), work, [this, &kind](Call back, absl::StatusOr<Job> job) {
    if (!job.ok()) return back.response->Send(ToErrorResponse(job.status()));
    Start(kind, std::move(back), *std::move(job));
  });
}

absl::Status GenerationEndpoint::CheckQueue(const Job& job) {
  const ServerOptions& options = core_.options();
  engine::EngineStats stats = core_.engine().Stats();
  if (options.max_num_queued_reqs > 0 && stats.num_waiting >= options.max_num_queued_reqs) {
    core_.metrics().OnRejection(false);
    return OverloadedError(
        fmt::format("The queue is full: {} requests wait already, and "
                    "--max-num-queued-reqs is {}.",
                    stats.num_waiting, options.max_num_queued_reqs));
  }
  int64_t tokens = stats.waiting_prompt_tokens;
  for (const JobPrompt& prompt : job.prompts) tokens += static_cast<int64_t>(prompt.tokens.size());
  if (options.max_num_queued_tokens > 0 && stats.waiting_prompt_tokens > 0 &&
      tokens > options.max_num_queued_tokens) {
    core_.metrics().OnRejection(true);
    return OverloadedError(
        fmt::format("The queue is full: {} prompt tokens wait already, and "
                    "--max-num-queued-tokens is {}.",
                    stats.waiting_prompt_tokens, options.max_num_queued_tokens));
  }
  return absl::OkStatus();
}

std::string GenerationEndpoint::MakeId(const Kind& kind, const Call& call,
                                       const GenerationRequest& request) const {
  std::string base = call.request_id;
  if (base.empty()) base = request.request_id;
  if (base.empty()) base = RandomHex(16);
  return fmt::format("{}{}", kind.id_prefix, base);
}

void GenerationEndpoint::Start(const Kind& kind, Call call, Job parsed) {
  absl::Status queue =
      stopping_ ? OverloadedError("The server is shutting down.") : CheckQueue(parsed);
  if (!queue.ok()) return call.response->Send(ToErrorResponse(queue));
  auto job = std::make_unique<Job>(std::move(parsed));
  AnswerContext context;
  context.id = MakeId(kind, call, job->request);
  context.created = absl::ToUnixSeconds(absl::Now());
  context.model = core_.options().served_model_names.front();
  context.fingerprint = core_.fingerprint();
  context.job = job.get();
  context.options = &core_.options();
  context.tokenizer = core_.serving().tokenizer;
  context.response = call.response;
  if (core_.options().log_requests) Log(context.id, *job);

  GenerationEnvironment environment{&core_.serving(), &core_.dispatcher(), &core_.metrics(),
                                    call.arrival, context.id};
  auto generation = std::make_shared<Generation>(
      environment, std::move(job), kind.make_answer(std::move(context)), std::move(call.response));
  uint64_t key = next_key_++;
  running_[key] = generation;
  generation->Start([this, key] { running_.erase(key); });
}

void GenerationEndpoint::Log(const std::string& id, const Job& job) const {
  const JobPrompt& prompt = job.prompts.front();
  spdlog::info("Received request {}: {} prompt tokens, max_tokens {}, n {}, prompt: {:?}", id,
               prompt.tokens.size(), job.request.sampling.max_tokens, job.request.n,
               Shortened(prompt.text, core_.options().max_log_len));
}

void GenerationEndpoint::Abort() {
  stopping_ = true;
  std::vector<std::shared_ptr<Generation>> generations;
  for (const auto& [key, generation] : running_) generations.push_back(generation);
  for (const auto& generation : generations) generation->AbortForShutdown();
}

void GenerationEndpoint::KeepAlive() {
  for (const auto& [key, generation] : running_) generation->KeepAlive();
}

}  // namespace fulgur::server

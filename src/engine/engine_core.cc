#include "engine/engine_core.h"

#include <algorithm>
#include <random>
#include <utility>

#include "absl/strings/str_format.h"
#include "base/check.h"
#include "base/status_macros.h"
#include "engine/request_check.h"
#include "engine/stop.h"
#include "sample/logprobs.h"
#include "sample/noise.h"

namespace fulgur::engine {
namespace {

uint64_t SystemSeed() {
  std::random_device device;
  return (static_cast<uint64_t>(device()) << 32) | device();
}

}  // namespace

struct EngineCore::ActiveRequest {
  sched::Sequence sequence;
  sample::SamplingParams params;
  uint64_t seed = 0;
  EventSink sink;
  RequestRecord record;
  std::vector<std::vector<TokenLogprob>> prompt_logprobs;  // so far

  std::span<const int32_t> prompt() const {
    return std::span(sequence.tokens).first(static_cast<size_t>(sequence.num_prompt_tokens));
  }
  std::span<const int32_t> output() const {
    return std::span(sequence.tokens).subspan(static_cast<size_t>(sequence.num_prompt_tokens));
  }
  bool wants_prompt_logprobs() const { return params.num_prompt_logprobs.has_value(); }
};

absl::Status ValidateOptions(const CoreOptions& options) {
  RETURN_IF_ERROR(sched::ValidateLimits(options.limits));
  if (options.limits.max_logit_rows <= options.limits.max_num_seqs) {
    return absl::InvalidArgumentError("max_logit_rows must be larger than max_num_seqs");
  }
  if (options.num_slots < options.limits.max_num_seqs) {
    return absl::InvalidArgumentError(
        absl::StrFormat("there are %d state slots for --max-num-seqs %d", options.num_slots,
                        options.limits.max_num_seqs));
  }
  if (options.num_pages < 1) return absl::InvalidArgumentError("there is no memory for the cache");
  return absl::OkStatus();
}

EngineCore::EngineCore(const CoreOptions& options, ModelRunner& runner)
    : options_(options),
      runner_(runner),
      vocab_size_(runner.VocabSize()),
      base_seed_(options.seed ? *options.seed : SystemSeed()),
      pages_(options.num_pages),
      slots_(options.num_slots),
      scheduler_(options.limits, pages_, slots_),
      sampler_(vocab_size_),
      logits_(static_cast<size_t>(options.limits.max_logit_rows * vocab_size_)),
      now_(Clock::now()) {
  batch_tokens_.reserve(static_cast<size_t>(options.limits.max_num_batched_tokens));
  batch_sequences_.reserve(static_cast<size_t>(options.limits.max_num_seqs));
}

EngineCore::~EngineCore() = default;

absl::Status EngineCore::CheckRequest(const Request& request) const {
  RETURN_IF_ERROR(engine::CheckRequest(request, options_.limits.max_model_len, vocab_size_));
  return scheduler_.CheckFits(static_cast<int64_t>(request.prompt.size()) +
                              request.params.max_tokens);
}

void EngineCore::Add(RequestId id, Request request, EventSink sink, Clock::time_point submitted) {
  auto active = std::make_unique<ActiveRequest>();
  active->params = std::move(request.params);
  active->seed = active->params.seed ? *active->params.seed : DrawSeed(id);
  active->sink = std::move(sink);
  active->record.submitted = submitted;
  active->record.num_prompt_tokens = static_cast<int64_t>(request.prompt.size());

  sched::Sequence& sequence = active->sequence;
  sequence.id = id;
  sequence.priority = request.priority;
  sequence.deadline = request.deadline;
  sequence.num_prompt_tokens = active->record.num_prompt_tokens;
  sequence.max_length = sequence.num_prompt_tokens + active->params.max_tokens;
  sequence.tokens = std::move(request.prompt);
  if (active->wants_prompt_logprobs()) {
    active->prompt_logprobs.reserve(sequence.tokens.size());
    active->prompt_logprobs.emplace_back();  // nothing is known of the first token
    if (sequence.num_prompt_tokens > 1) sequence.logits_from = 0;
  }
  scheduler_.Add(&sequence);
  requests_.emplace(id, std::move(active));
}

uint64_t EngineCore::DrawSeed(RequestId id) const {
  const auto words =
      sample::Philox({static_cast<uint32_t>(id), static_cast<uint32_t>(id >> 32), 0, 1},
                     {static_cast<uint32_t>(base_seed_), static_cast<uint32_t>(base_seed_ >> 32)});
  return (static_cast<uint64_t>(words[0]) << 32) | words[1];
}

void EngineCore::Abort(RequestId id) {
  const auto found = requests_.find(id);
  if (found != requests_.end()) scheduler_.Abort(&found->second->sequence);
}

void EngineCore::EndAll(FinishReason reason, const std::string& error) {
  while (!requests_.empty()) {
    ActiveRequest& request = *requests_.begin()->second;
    RequestEvent event;
    event.finish = reason;
    event.error = error;
    End(request, std::move(event));
  }
}

absl::Status EngineCore::Step() {
  now_ = Clock::now();
  const sched::StepPlan& plan = scheduler_.Plan(now_);
  EndReaped(plan);
  if (plan.chunks.empty()) return absl::OkStatus();
  BuildBatch(plan);
  const auto wanted = static_cast<size_t>(plan.num_logit_rows * vocab_size_);
  RETURN_IF_ERROR(
      runner_.Forward({batch_tokens_, batch_sequences_}, std::span(logits_).first(wanted)));
  now_ = Clock::now();
  CountStep(plan);
  ReadLogits(plan);
  return absl::OkStatus();
}

EngineCore::ActiveRequest& EngineCore::Find(const sched::Sequence& sequence) {
  const auto found = requests_.find(sequence.id);
  CHECK(found != requests_.end());
  return *found->second;
}

void EngineCore::EndReaped(const sched::StepPlan& plan) {
  for (const sched::Sequence* sequence : plan.reaped) {
    RequestEvent event;
    event.finish = FinishReason::kAbort;
    if (!sequence->aborted) event.error = "the request's deadline passed";
    End(Find(*sequence), std::move(event));
  }
}

void EngineCore::BuildBatch(const sched::StepPlan& plan) {
  batch_tokens_.clear();
  batch_sequences_.clear();
  for (const sched::ScheduledChunk& chunk : plan.chunks) {
    const sched::Sequence& sequence = *chunk.sequence;
    RequestRecord& record = Find(sequence).record;
    if (!record.scheduled) record.scheduled = now_;
    batch_sequences_.push_back({.slot = sequence.slot,
                                .pages = sequence.pages,
                                .first_position = chunk.first_position,
                                .first_row = static_cast<int32_t>(batch_tokens_.size()),
                                .num_rows = chunk.num_tokens,
                                .num_logit_rows = chunk.num_logit_rows});
    const auto first = sequence.tokens.begin() + chunk.first_position;
    batch_tokens_.insert(batch_tokens_.end(), first, first + chunk.num_tokens);
  }
}

void EngineCore::CountStep(const sched::StepPlan& plan) {
  ++totals_.num_steps;
  totals_.step_tokens_sum += plan.num_tokens;
  const auto bucket =
      std::lower_bound(kStepTokenBounds.begin(), kStepTokenBounds.end(), plan.num_tokens);
  ++totals_.step_tokens[static_cast<size_t>(bucket - kStepTokenBounds.begin())];
}

void EngineCore::ReadLogits(const sched::StepPlan& plan) {
  const auto width = static_cast<size_t>(vocab_size_);
  size_t row = 0;
  for (const sched::ScheduledChunk& chunk : plan.chunks) {
    const auto num_rows = static_cast<size_t>(chunk.num_logit_rows);
    if (num_rows == 0) continue;
    const std::span<const float> rows = std::span(logits_).subspan(row * width, num_rows * width);
    row += num_rows;
    ActiveRequest& request = Find(*chunk.sequence);
    if (request.sequence.logits_from < chunk.first_position + chunk.num_tokens) {
      CollectPromptLogprobs(request, chunk, rows);
    }
    if (chunk.samples) SampleToken(request, rows.last(width));
  }
}

void EngineCore::CollectPromptLogprobs(ActiveRequest& request, const sched::ScheduledChunk& chunk,
                                       std::span<const float> rows) {
  const auto width = static_cast<size_t>(vocab_size_);
  sched::Sequence& sequence = request.sequence;
  // The row of a position says how likely the token after it was.
  int64_t next = chunk.first_position + chunk.num_tokens - chunk.num_logit_rows + 1;
  for (; !rows.empty() && next < sequence.num_prompt_tokens; ++next, rows = rows.subspan(width)) {
    const std::span<const float> row = rows.first(width);
    const double log_sum_exp = sample::LogSumExp(row);
    auto& entry = request.prompt_logprobs.emplace_back();
    entry.push_back(
        sample::LogprobOf(row, log_sum_exp, sequence.tokens[static_cast<size_t>(next)]));
    sample::AppendTopLogprobs(row, log_sum_exp, *request.params.num_prompt_logprobs, entry);
  }
  const bool complete = next >= sequence.num_prompt_tokens;
  sequence.logits_from = complete ? std::numeric_limits<int64_t>::max() : next - 1;
}

void EngineCore::SampleToken(ActiveRequest& request, std::span<const float> row) {
  RequestEvent event;
  const auto token = sampler_.Sample(row, {.params = request.params,
                                           .seed = request.seed,
                                           .prompt = request.prompt(),
                                           .output = request.output(),
                                           .eos_tokens = options_.eos_tokens});
  if (!token.ok()) {
    if (absl::IsInternal(token.status())) ++totals_.num_bad_logits;
    event.finish = FinishReason::kError;
    event.error = std::string(token.status().message());
    return End(request, std::move(event));
  }
  sched::Sequence& sequence = request.sequence;
  RequestRecord& record = request.record;
  if (!record.first_token) {
    record.first_token = now_;
    record.num_computed_prompt_tokens = sequence.num_prompt_tokens;
    totals_.prompt_tokens += sequence.num_prompt_tokens;
    event.prompt_logprobs = std::move(request.prompt_logprobs);
  }
  record.last_token = now_;
  ++record.num_output_tokens;
  ++totals_.generation_tokens;
  event.tokens.push_back(Describe(request, *token, row));
  sequence.tokens.push_back(*token);
  event.finish = CheckStop(request.params, options_.eos_tokens, *token, record.num_output_tokens,
                           sequence.length() == sequence.max_length);
  if (event.finish == FinishReason::kStop) event.stop_token = *token;
  if (event.finish) return End(request, std::move(event));
  event.time = now_;
  request.sink(std::move(event));
}

OutputToken EngineCore::Describe(const ActiveRequest& request, int32_t token,
                                 std::span<const float> row) const {
  OutputToken output{.token = token, .logprob = std::nullopt, .alternatives = {}};
  if (!request.params.num_logprobs) return output;
  const double log_sum_exp = sample::LogSumExp(row);
  output.logprob = sample::LogprobOf(row, log_sum_exp, token);
  sample::AppendTopLogprobs(row, log_sum_exp, *request.params.num_logprobs, output.alternatives);
  return output;
}

void EngineCore::End(ActiveRequest& request, RequestEvent event) {
  if (request.sequence.state != sched::SequenceState::kFinished) {
    scheduler_.Finish(&request.sequence);
  }
  ++totals_.num_finished[static_cast<size_t>(*event.finish)];
  event.time = now_;
  request.record.finished = now_;
  request.record.num_preemptions = request.sequence.num_preemptions;
  event.record = request.record;
  const EventSink sink = std::move(request.sink);
  requests_.erase(request.sequence.id);
  sink(std::move(event));
}

EngineStats EngineCore::Stats() const {
  EngineStats stats = totals_;
  stats.num_running = static_cast<int64_t>(scheduler_.running().size());
  stats.num_waiting = static_cast<int64_t>(scheduler_.waiting().size());
  for (const sched::Sequence* sequence : scheduler_.waiting()) {
    stats.waiting_prompt_tokens += sequence->length();
  }
  stats.pages_total = pages_.num_pages();
  stats.pages_used = pages_.num_used();
  stats.slots_used = slots_.num_used();
  stats.num_preemptions = scheduler_.num_preemptions();
  return stats;
}

}  // namespace fulgur::engine

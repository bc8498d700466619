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

absl::Status ValidateOptions(const CoreOptions& options, const ModelRunner& runner) {
  RETURN_IF_ERROR(sched::ValidateLimits(options.limits));
  RETURN_IF_ERROR(ValidateSpeculation(options.speculation, runner.MaxDrafts()));
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
      verifier_(options.speculation.verification, vocab_size_),
      speculation_(options.speculation.enabled()
                       ? std::make_unique<Speculation>(options_.speculation, runner, verifier_,
                                                       options_.eos_tokens)
                       : nullptr),
      scheduler_(options.limits, pages_, slots_, speculation_.get()),
      logits_(static_cast<size_t>(options.limits.max_logit_rows * vocab_size_)),
      now_(Clock::now()) {
  batch_tokens_.reserve(static_cast<size_t>(options.limits.max_num_batched_tokens));
  batch_sequences_.reserve(static_cast<size_t>(options.limits.max_num_seqs));
}

EngineCore::~EngineCore() = default;

absl::Status EngineCore::CheckRequest(const Request& request) const {
  RETURN_IF_ERROR(engine::CheckRequest(request, options_.limits.max_model_len, vocab_size_));
  if (request.constraint && !options_.speculation.synthetic_rates.empty()) {
    return absl::InvalidArgumentError(
        "a format cannot be kept while drafts are accepted by decree (synthetic acceptance rates)");
  }
  return scheduler_.CheckFits(static_cast<int64_t>(request.prompt.size()) +
                              request.params.max_tokens);
}

void EngineCore::Add(RequestId id, Request request, EventSink sink, Clock::time_point submitted) {
  auto active = std::make_unique<ActiveRequest>();
  active->params = std::move(request.params);
  active->constraint = std::move(request.constraint);
  active->seed = active->params.seed ? *active->params.seed : DrawSeed(id);
  active->sink = std::move(sink);
  active->record.submitted = submitted;
  active->record.num_prompt_tokens = static_cast<int64_t>(request.prompt.size());

  active->id = id;
  active->priority = request.priority;
  active->deadline = request.deadline;
  active->num_prompt_tokens = active->record.num_prompt_tokens;
  active->max_length = active->num_prompt_tokens + active->params.max_tokens;
  active->tokens = std::move(request.prompt);
  if (active->wants_prompt_logprobs()) {
    active->prompt_logprobs.reserve(active->tokens.size());
    active->prompt_logprobs.emplace_back();  // nothing is known of the first token
    if (active->num_prompt_tokens > 1) active->logits_from = 0;
  }
  if (speculation_) speculation_->Admit(*active, request.max_drafts);
  scheduler_.Add(active.get());
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
  if (found != requests_.end()) scheduler_.Abort(found->second.get());
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
  RETURN_IF_ERROR(RunModel(plan));
  CountStep(plan);
  ReadLogits(plan);
  return speculation_ ? speculation_->Propose() : absl::OkStatus();
}

absl::Status EngineCore::RunModel(const sched::StepPlan& plan) {
  const auto wanted = static_cast<size_t>(plan.num_logit_rows * vocab_size_);
  const Clock::time_point start = Clock::now();
  RETURN_IF_ERROR(
      runner_.Forward({batch_tokens_, batch_sequences_}, std::span(logits_).first(wanted)));
  now_ = Clock::now();
  if (speculation_) {
    speculation_->ObserveForward(plan,
                                 std::chrono::duration<double, std::milli>(now_ - start).count());
  }
  return absl::OkStatus();
}

void EngineCore::EndReaped(const sched::StepPlan& plan) {
  for (sched::Sequence* sequence : plan.reaped) {
    RequestEvent event;
    event.finish = FinishReason::kAbort;
    if (!sequence->aborted) event.error = "the request's deadline passed";
    End(RequestOf(*sequence), std::move(event));
  }
}

void EngineCore::BuildBatch(const sched::StepPlan& plan) {
  batch_tokens_.clear();
  batch_sequences_.clear();
  for (const sched::ScheduledChunk& chunk : plan.chunks) {
    ActiveRequest& request = RequestOf(*chunk.sequence);
    if (!request.record.scheduled) request.record.scheduled = now_;
    batch_sequences_.push_back({.slot = request.slot,
                                .pages = request.pages,
                                .first_position = chunk.first_position,
                                .first_row = static_cast<int32_t>(batch_tokens_.size()),
                                .num_rows = chunk.num_rows(),
                                .num_logit_rows = chunk.num_logit_rows});
    const auto first = request.tokens.begin() + chunk.first_position;
    batch_tokens_.insert(batch_tokens_.end(), first, first + chunk.num_tokens);
    const auto drafts = request.drafts.begin();
    batch_tokens_.insert(batch_tokens_.end(), drafts, drafts + chunk.num_drafts);
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
  for (size_t i = 0; i < plan.chunks.size(); ++i) {
    const sched::ScheduledChunk& chunk = plan.chunks[i];
    const auto num_rows = static_cast<size_t>(chunk.num_logit_rows);
    const std::span<const float> rows = std::span(logits_).subspan(row * width, num_rows * width);
    row += num_rows;
    ActiveRequest& request = RequestOf(*chunk.sequence);
    if (num_rows > 0 && request.logits_from < chunk.first_position + chunk.num_tokens) {
      CollectPromptLogprobs(request, chunk, rows);
    }
    const size_t say_rows = 1 + static_cast<size_t>(chunk.num_drafts);
    if (chunk.samples && !SayTokens(request, chunk, rows.last(say_rows * width))) continue;
    if (!speculation_) continue;
    const int64_t computed = request.num_computed;
    speculation_->Continue(request,
                           {.sequence = static_cast<int32_t>(i),
                            .num_accepted = static_cast<int32_t>(computed - chunk.first_position),
                            .next_token = request.tokens[static_cast<size_t>(computed)]},
                           chunk.samples);
  }
}

void EngineCore::CollectPromptLogprobs(ActiveRequest& request, const sched::ScheduledChunk& chunk,
                                       std::span<const float> rows) {
  const auto width = static_cast<size_t>(vocab_size_);
  // The row of a position says how likely the token after it was.
  int64_t next = chunk.first_position + chunk.num_tokens - chunk.num_logit_rows + 1;
  for (; !rows.empty() && next < request.num_prompt_tokens; ++next, rows = rows.subspan(width)) {
    const std::span<const float> row = rows.first(width);
    const double log_sum_exp = sample::LogSumExp(row);
    auto& entry = request.prompt_logprobs.emplace_back();
    entry.push_back(sample::LogprobOf(row, log_sum_exp, request.tokens[static_cast<size_t>(next)]));
    sample::AppendTopLogprobs(row, log_sum_exp, *request.params.num_prompt_logprobs, entry);
  }
  const bool complete = next >= request.num_prompt_tokens;
  request.logits_from = complete ? std::numeric_limits<int64_t>::max() : next - 1;
}

// The rows are those of the last known token and of the drafts behind it: [1 + num_drafts, V]. Each
// is sampled in order, with what was said before, until one does not confirm the draft behind it.
bool EngineCore::SayTokens(ActiveRequest& request, const sched::ScheduledChunk& chunk,
                           std::span<const float> rows) {
  const auto width = static_cast<size_t>(vocab_size_);
  const auto decreed = speculation_ ? speculation_->DecreedAcceptance(request) : std::nullopt;
  RequestEvent event;
  event.tokens.reserve(1 + static_cast<size_t>(chunk.num_drafts));
  DraftRound round{.verified = chunk.num_drafts};
  for (int32_t row = 0; row <= chunk.num_drafts && !event.finish; ++row) {
    const std::span<const float> logits = rows.subspan(static_cast<size_t>(row) * width, width);
    const auto verdict = Judge(request, row, chunk.num_drafts, logits, decreed);
    if (!verdict.ok()) {
      if (absl::IsInternal(verdict.status())) ++totals_.num_bad_logits;
      event.finish = FinishReason::kError;
      event.error = std::string(verdict.status().message());
      break;
    }
    Append(request, verdict->token, logits, event);
    if (row == chunk.num_drafts) break;
    ++round.tested;
    if (!verdict->stands) break;
    ++round.accepted;
    ++request.num_computed;
  }
  if (speculation_) speculation_->Settle(request, round);
  return SendTokens(request, std::move(event));
}

absl::StatusOr<sample::Verdict> EngineCore::Judge(const ActiveRequest& request, int32_t row,
                                                  int32_t num_drafts, std::span<const float> logits,
                                                  std::optional<int32_t> decreed) {
  sample::TokenContext context = request.Context(options_.eos_tokens);
  if (request.constraint && request.constraint->active()) {
    ASSIGN_OR_RETURN(context.allowed, request.constraint->Allowed());
  }
  if (row < num_drafts && decreed && row < *decreed) {
    return sample::Verdict{request.drafts[static_cast<size_t>(row)], true};
  }
  if (row < num_drafts && !decreed) {
    return verifier_.Verify(logits, context, speculation_->DraftAt(request, row));
  }
  ASSIGN_OR_RETURN(const int32_t token, verifier_.Sample(logits, context));
  return sample::Verdict{token, false};
}

void EngineCore::Append(ActiveRequest& request, int32_t token, std::span<const float> row,
                        RequestEvent& event) {
  RequestRecord& record = request.record;
  if (!record.first_token) {
    record.first_token = now_;
    record.num_computed_prompt_tokens = request.num_prompt_tokens;
    totals_.prompt_tokens += request.num_prompt_tokens;
    event.prompt_logprobs = std::move(request.prompt_logprobs);
  }
  record.last_token = now_;
  ++record.num_output_tokens;
  ++totals_.generation_tokens;
  event.tokens.push_back(Describe(request, token, row));
  request.tokens.push_back(token);
  if (request.constraint) request.constraint->Accept(token);
  event.finish = CheckStop(request.params, options_.eos_tokens, token, record.num_output_tokens,
                           request.length() == request.max_length);
  if (event.finish == FinishReason::kStop) event.stop_token = token;
}

bool EngineCore::SendTokens(ActiveRequest& request, RequestEvent event) {
  if (event.finish) {
    End(request, std::move(event));
    return false;
  }
  event.time = now_;
  request.sink(std::move(event));
  return true;
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
  if (request.state != sched::SequenceState::kFinished) {
    scheduler_.Finish(&request);
  }
  ++totals_.num_finished[static_cast<size_t>(*event.finish)];
  event.time = now_;
  request.record.finished = now_;
  request.record.num_preemptions = request.num_preemptions;
  event.record = request.record;
  const EventSink sink = std::move(request.sink);
  requests_.erase(request.id);
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
  if (speculation_) stats.speculation = speculation_->Stats();
  return stats;
}

}  // namespace fulgur::engine

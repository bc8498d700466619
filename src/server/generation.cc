#include "server/generation.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

#include "absl/time/clock.h"
#include "base/status_macros.h"
#include "grammar/grammar_constraint.h"
#include "server/api_error.h"
#include "text/utf8.h"

namespace fulgur::server {
namespace {

using engine::FinishReason;

// Choices of one job that are with the engine at a time, so that a job with thousands of them
// neither fills the queue nor copies its prompt thousands of times.
constexpr size_t kMaxChoicesInEngine = 256;

FinishedReason MetricOf(const ChoiceFinish& finish) {
  if (finish.reason == "length") return FinishedReason::kLength;
  if (finish.reason == "abort") return FinishedReason::kAbort;
  return FinishedReason::kStop;
}

}  // namespace

Generation::Generation(GenerationEnvironment environment, std::unique_ptr<Job> job,
                       std::unique_ptr<Answer> answer, std::shared_ptr<ResponseStream> response)
    : environment_(std::move(environment)),
      job_(std::move(job)),
      answer_(std::move(answer)),
      response_(std::move(response)) {
  for (const JobPrompt& prompt : job_->prompts) {
    usage_.prompt_tokens += static_cast<int64_t>(prompt.tokens.size());
  }
  choices_.reserve(static_cast<size_t>(job_->num_choices()));
}

void Generation::Start(std::function<void()> on_end) {
  on_end_ = std::move(on_end);
  environment_.metrics->OnRequest(job_->request.n);
  absl::Status status = StartChoices();
  if (!status.ok()) return Fail(status);
  response_->OnDisconnect([self = shared_from_this()] { self->OnDisconnect(); });
  if (!ended_) answer_->Begin();
}

const JobPrompt& Generation::PromptOf(const Choice& choice) const {
  return job_->prompts[choice.index / static_cast<size_t>(job_->request.n)];
}

Generation::Choice Generation::MakeChoice(size_t index) const {
  Choice choice;
  choice.index = index;
  if (const text::Tokenizer* tokenizer = environment_.serving->tokenizer) {
    text::ResponseOptions options;
    options.skip_special_tokens = job_->request.skip_special_tokens;
    options.stop_strings = job_->request.stop;
    options.include_stop_string = job_->request.include_stop_string;
    options.min_tokens = job_->request.sampling.min_tokens;
    options.parser = job_->parser;
    choice.decoder.emplace(*tokenizer, std::move(options));
  }
  return choice;
}

// Starts as many choices as may be under way at once.
absl::Status Generation::StartChoices() {
  auto total = static_cast<size_t>(job_->num_choices());
  while (choices_.size() < total && choices_.size() - num_finished_ < kMaxChoicesInEngine) {
    Choice& choice = choices_.emplace_back(MakeChoice(choices_.size()));
    TakeDueTokens(choice, &choice.carried);
    RETURN_IF_ERROR(SubmitChoice(choice));
  }
  return absl::OkStatus();
}

// Tokens that the choice may still get. The context may leave less behind one prompt of a job than
// behind another.
int64_t Generation::RoomLeft(const Choice& choice) const {
  auto produced = static_cast<int64_t>(choice.output.size());
  auto prompt = static_cast<int64_t>(PromptOf(choice).tokens.size());
  int64_t limit =
      std::min(job_->request.sampling.max_tokens, environment_.serving->max_model_len - prompt);
  return limit - produced;
}

std::shared_ptr<sample::TokenConstraint> Generation::MakeConstraint(const Choice& choice) const {
  if (!job_->format) return nullptr;
  auto constraint =
      std::make_shared<grammar::GrammarConstraint>(job_->format, job_->format_starts_behind);
  for (const int32_t token : job_->format_begun) constraint->Accept(token);
  for (const int32_t token : choice.output) constraint->Accept(token);
  return constraint;
}

engine::Request Generation::MakeRequest(const Choice& choice) const {
  engine::Request request;
  request.prompt = PromptOf(choice).tokens;
  request.prompt.insert(request.prompt.end(), choice.output.begin(), choice.output.end());
  request.params = job_->request.sampling;
  auto produced = static_cast<int64_t>(choice.output.size());
  // The context may leave less room behind one prompt than behind another.
  int64_t room = environment_.serving->max_model_len - static_cast<int64_t>(request.prompt.size());
  request.params.max_tokens = std::min(request.params.max_tokens - produced, room);
  request.params.min_tokens = std::max<int64_t>(0, request.params.min_tokens - produced);
  if (produced > 0) request.params.num_prompt_logprobs.reset();
  if (request.params.seed) {
    *request.params.seed += choice.index % static_cast<size_t>(job_->request.n);
  }
  request.constraint = MakeConstraint(choice);
  request.priority = job_->request.priority;
  request.max_drafts = job_->request.max_drafts;
  request.script_key = job_->script_key;
  return request;
}

absl::Status Generation::SubmitChoice(Choice& choice) {
  ASSIGN_OR_RETURN(choice.submission, environment_.dispatcher->Submit(
                                          MakeRequest(choice), choice.index, shared_from_this()));
  return absl::OkStatus();
}

// ---- events ----

void Generation::OnEvent(size_t index, SubmissionId id, engine::RequestEvent event) {
  Choice& choice = choices_[index];
  if (ended_ || choice.submission != id) return;
  if (event.finish == FinishReason::kError) {
    choice.submission = 0;
    return Fail(EngineError(event.error));
  }
  if (event.disconnect) {
    response_->Break();
    return OnDisconnect();
  }
  if (choice.output.empty() && choice.index % static_cast<size_t>(job_->request.n) == 0) {
    usage_.cached_tokens += event.num_cached_tokens;
  }
  if (!event.prompt_logprobs.empty()) {
    answer_->SetPromptLogprobs(choice.index / static_cast<size_t>(job_->request.n),
                               std::move(event.prompt_logprobs));
  }
  ChoiceUpdate update = std::exchange(choice.carried, {});
  TakeTokens(choice, event, &update);
  if (event.finish && !choice.finished && choice.submission == id) {
    choice.submission = 0;
    FinishChoice(choice, *event.finish, event.stop_token, &update);
  }
  Deliver(choice, std::move(update));
}

void Generation::TakeTokens(Choice& choice, engine::RequestEvent& event, ChoiceUpdate* update) {
  if (!event.tokens.empty()) MeasureTokens(choice);
  for (engine::OutputToken& token : event.tokens) {
    bool ends = event.finish == FinishReason::kStop && &token == &event.tokens.back();
    TakeToken(choice, std::move(token), update);
    if (choice.decoder && choice.decoder->stopped()) {
      environment_.dispatcher->Abort(std::exchange(choice.submission, 0));
      return FinishChoice(choice, FinishReason::kStop, std::nullopt, update);
    }
    if (!ends && Splice(choice, update)) return;
  }
}

void Generation::TakeToken(Choice& choice, engine::OutputToken token, ChoiceUpdate* update) {
  choice.output.push_back(token.token);
  if (job_->prompt_only) return;
  ++usage_.completion_tokens;
  if (choice.decoder && !HidesToken(token.token)) {
    usage_.reasoning_tokens -= choice.decoder->reasoning_tokens();
    choice.decoder->Push(token.token, &update->deltas);
    usage_.reasoning_tokens += choice.decoder->reasoning_tokens();
  }
  update->tokens.push_back(std::move(token));
}

// Stop tokens of the client are no text unless it wants to see what stopped the answer.
bool Generation::HidesToken(int32_t token) const {
  const auto& stops = job_->request.sampling.stop_token_ids;
  return !job_->request.include_stop_string &&
         std::find(stops.begin(), stops.end(), token) != stops.end();
}

// Takes the tokens that have to follow now, whatever the model would write: the end of reasoning
// whose budget is used up, the opening of a call that the client insists on. False if there are
// none, or if they would leave no room for more.
bool Generation::TakeDueTokens(Choice& choice, ChoiceUpdate* update) {
  if (!choice.decoder || choice.finished) return false;
  bool reasoning = choice.decoder->in_reasoning();
  int64_t budget = job_->request.thinking_token_budget.value_or(-1);
  std::vector<int32_t> due;
  bool close = reasoning && budget >= 0 && choice.decoder->reasoning_tokens() >= budget;
  if (close) due.push_back(job_->think_close_token);
  bool force = (!reasoning || close) && !choice.call_forced;
  if (force) {
    for (int32_t token : job_->forced_call_tokens) due.push_back(token);
  }
  if (due.empty() || RoomLeft(choice) <= static_cast<int64_t>(due.size())) {
    return false;
  }
  choice.call_forced |= force;
  for (int32_t token : due) TakeToken(choice, {token, {}, {}}, update);
  return true;
}

// Goes on behind due tokens with a new request to the engine, which finds the prefix in its cache.
// True if it did; tokens behind the current one are then void.
bool Generation::Splice(Choice& choice, ChoiceUpdate* update) {
  if (!TakeDueTokens(choice, update)) return false;
  environment_.dispatcher->Abort(std::exchange(choice.submission, 0));
  absl::Status status = SubmitChoice(choice);
  if (!status.ok()) Fail(status);
  return true;
}

void Generation::MeasureTokens(Choice& choice) {
  absl::Time now = absl::Now();
  if (choice.first_token == absl::InfinitePast()) {
    choice.first_token = now;
    environment_.metrics->OnFirstToken(absl::ToDoubleSeconds(now - environment_.arrival));
  } else {
    environment_.metrics->OnLaterTokens(absl::ToDoubleSeconds(now - choice.last_token));
  }
  choice.last_token = now;
}

// ---- ends ----

void Generation::FinishChoice(Choice& choice, FinishReason reason,
                              std::optional<int32_t> stop_token, ChoiceUpdate* update) {
  choice.finished = true;
  ++num_finished_;
  if (choice.decoder) {
    bool cut = reason != FinishReason::kStop;
    choice.decoder->Finish(cut ? text::OutputEnd::kLength : text::OutputEnd::kStop,
                           &update->deltas);
  }
  LogLosses(choice, reason);
  update->finish = FinishOf(choice, reason, stop_token);
  LogOutput(choice, *update->finish);
  MeasureFinish(choice, MetricOf(*update->finish));
}

// What a client may miss in its answer.
void Generation::LogLosses(const Choice& choice, FinishReason reason) const {
  if (!choice.decoder) return;
  if (reason == FinishReason::kLength && choice.decoder->in_reasoning()) {
    spdlog::info(
        "An answer was cut inside its reasoning after {} tokens: content is empty. A larger "
        "max_tokens gives it room.",
        choice.output.size());
  }
  text::OutputFlaws flaws = choice.decoder->flaws();
  if (!flaws.any()) return;
  std::vector<std::string_view> parts;
  if (flaws.stray_markup) parts.push_back("tags outside of a call");
  if (flaws.lost_text) parts.push_back("text or tags inside or behind a block that make no call");
  if (flaws.unfinished_call) parts.push_back("a call that the output ended in");
  spdlog::warn(
      "Choice {} of {} holds malformed tool calls: {}. --enable-log-requests --enable-log-outputs "
      "log what the model wrote; a client sees it with return_token_ids and /detokenize.",
      choice.index, environment_.id, fmt::join(parts, ", "));
}

void Generation::LogOutput(const Choice& choice, const ChoiceFinish& finish) const {
  const ServerOptions& options = *environment_.serving->options;
  if (!options.log_requests || !options.log_outputs || !choice.decoder) return;
  std::string text = environment_.serving->tokenizer->Decode(choice.output);
  if (options.max_log_len >= 0 && text.size() > static_cast<size_t>(options.max_log_len)) {
    text = text::RepairUtf8(text.substr(0, static_cast<size_t>(options.max_log_len))) + "...";
  }
  spdlog::info("Generated response {} of {}: {} tokens, finish_reason {}, output: {:?}",
               choice.index, environment_.id, choice.output.size(), finish.reason, text);
}

ChoiceFinish Generation::FinishOf(const Choice& choice, FinishReason reason,
                                  std::optional<int32_t> stop_token) const {
  ChoiceFinish finish;
  if (choice.decoder && choice.decoder->stopped()) {
    finish.stop_string = choice.decoder->stop_string();
    reason = FinishReason::kStop;
  } else if (reason == FinishReason::kStop && stop_token) {
    const auto& eos = environment_.serving->eos_token_ids;
    bool is_eos = std::find(eos.begin(), eos.end(), *stop_token) != eos.end();
    if (!is_eos) finish.stop_token = stop_token;
  }
  bool calls = choice.decoder && choice.decoder->num_tool_calls() > 0 &&
               job_->tool_choice != ToolChoice::kNamed;
  finish.reason = reason == FinishReason::kLength  ? "length"
                  : reason == FinishReason::kAbort ? "abort"
                  : calls                          ? "tool_calls"
                                                   : "stop";
  if (job_->prompt_only) finish.reason = "length";
  return finish;
}

void Generation::MeasureFinish(const Choice& choice, FinishedReason reason) {
  FinishedChoice finished;
  finished.reason = reason;
  finished.end_to_end = absl::ToDoubleSeconds(absl::Now() - environment_.arrival);
  finished.prompt_tokens = static_cast<int64_t>(PromptOf(choice).tokens.size());
  finished.output_tokens = static_cast<int64_t>(choice.output.size());
  finished.max_tokens = job_->request.sampling.max_tokens;
  if (finished.output_tokens > 1) {
    finished.per_output_token = absl::ToDoubleSeconds(choice.last_token - choice.first_token) /
                                static_cast<double>(finished.output_tokens - 1);
  }
  environment_.metrics->OnFinish(finished);
  if (job_->parser && job_->parser->parse_tools) {
    environment_.metrics->OnToolParserUse(job_->request.stream,
                                          choice.decoder->num_tool_calls() > 0);
  }
}

void Generation::Deliver(Choice& choice, ChoiceUpdate update) {
  if (ended_) return;
  bool finished = update.finish.has_value();
  answer_->Update(choice.index, std::move(update), usage_);
  if (!finished || ended_) return;
  choice.decoder.reset();  // of thousands of choices only those under way take memory
  if (num_finished_ == static_cast<size_t>(job_->num_choices())) {
    answer_->End(usage_);
    return End();
  }
  absl::Status status = StartChoices();
  if (!status.ok()) Fail(status);
}

void Generation::AbortForShutdown() {
  auto self = shared_from_this();
  for (size_t i = 0; i < choices_.size() && !ended_; ++i) {
    Choice& choice = choices_[i];
    if (choice.finished) continue;
    environment_.dispatcher->Abort(std::exchange(choice.submission, 0));
    ChoiceUpdate update = std::exchange(choice.carried, {});
    FinishChoice(choice, FinishReason::kAbort, std::nullopt, &update);
    answer_->Update(choice.index, std::move(update), usage_);
  }
  if (ended_) return;
  answer_->End(usage_);
  End();
}

void Generation::Fail(const absl::Status& error) {
  if (ended_) return;
  AbortChoices(FinishedReason::kError);
  answer_->Fail(error);
  End();
}

void Generation::OnDisconnect() {
  if (ended_) return;
  AbortChoices(FinishedReason::kAbort);
  End();
}

void Generation::AbortChoices(FinishedReason reason) {
  auto self = shared_from_this();
  for (Choice& choice : choices_) {
    if (choice.finished) continue;
    choice.finished = true;
    environment_.dispatcher->Abort(std::exchange(choice.submission, 0));
    MeasureFinish(choice, reason);
  }
}

void Generation::End() {
  ended_ = true;
  if (auto on_end = std::exchange(on_end_, nullptr)) on_end();
}

}  // namespace fulgur::server

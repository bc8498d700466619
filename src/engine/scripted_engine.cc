#include "engine/scripted_engine.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <queue>
#include <string>
#include <thread>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "base/status_macros.h"
#include "engine/inbox.h"
#include "engine/request_check.h"
#include "engine/stop.h"

namespace fulgur::engine {
namespace {

constexpr int64_t kMaxStreams = 1 << 20;

struct Answer {
  ScriptLine line;
  std::vector<int32_t> tokens;
};

// An answer on its way to one request.
struct Stream {
  RequestId id = 0;
  sample::SamplingParams params;
  EventSink sink;
  const Answer* answer = nullptr;
  std::optional<Clock::time_point> deadline;
  size_t next = 0;  // token of the answer
  size_t steps = 0;
  std::vector<int32_t> prompt;
  RequestRecord record;
  Clock::time_point due;  // of the next step
};

// When to look at a stream again. Entries of streams that ended are skipped.
struct Timer {
  Clock::time_point time;
  uint64_t order = 0;  // of equal times the first set comes first
  RequestId id = 0;

  bool operator>(const Timer& other) const {
    return std::pair(time, order) > std::pair(other.time, other.order);
  }
};

class ScriptedEngine : public Engine {
 public:
  explicit ScriptedEngine(ScriptedEngineOptions options);
  ~ScriptedEngine() override { Shutdown(false); }

  absl::StatusOr<RequestId> Submit(Request request, EventSink sink) override;
  void Abort(RequestId id) override { inbox_.PutAbort(id); }
  absl::Status Health() const override { return absl::OkStatus(); }
  EngineStats Stats() const override;
  int64_t MaxModelLen() const override { return options_.max_model_len; }
  int64_t VocabSize() const override { return options_.vocab_size; }
  void Shutdown(bool drain) override;

 private:
  const Answer* FindAnswer(const std::string& key) const;

  // The thread's own:
  void Run();
  void WaitForMail(InboxContents& mail);
  void Start(Submission& submission);
  void SetTimer(const Stream& stream);
  void RunTimers();
  void Advance(Stream& stream);
  std::optional<int32_t> NextToken(Stream& stream) const;
  void AddToken(Stream& stream, int32_t token, RequestEvent& event);
  void CountDrafts(const ScriptLine& line, int64_t said);
  void EndAsScripted(const Stream& stream);
  void End(RequestId id, RequestEvent event);
  void AbortAll();
  void Publish();

  const ScriptedEngineOptions options_;
  std::vector<Answer> answers_;
  Inbox inbox_;
  std::atomic<RequestId> next_id_{1};

  absl::flat_hash_map<RequestId, std::unique_ptr<Stream>> streams_;
  std::priority_queue<Timer, std::vector<Timer>, std::greater<>> timers_;
  uint64_t next_order_ = 0;
  EngineStats counts_;

  mutable std::mutex mutex_;  // guards published_
  EngineStats published_;
  std::mutex shutdown_mutex_;  // one joins
  std::thread thread_;
};

ScriptedEngine::ScriptedEngine(ScriptedEngineOptions options) : options_(std::move(options)) {
  SpeculationStats& speculation = counts_.speculation;
  for (const ScriptLine& line : options_.script) {
    answers_.push_back({line, options_.tokenize(line.text)});
    const auto most = std::max_element(line.tokens_per_step.begin(), line.tokens_per_step.end());
    speculation.num_drafts = std::max(speculation.num_drafts, static_cast<int32_t>(*most) - 1);
  }
  // Servers without drafts have no counters of them.
  if (speculation.num_drafts > 0) speculation.method = SpeculationStats::Method::kMtp;
  thread_ = std::thread([this] { Run(); });
}

const Answer* ScriptedEngine::FindAnswer(const std::string& key) const {
  const Answer* fallback = nullptr;
  for (const Answer& answer : answers_) {
    if (answer.line.match.empty()) {
      if (fallback == nullptr) fallback = &answer;
    } else if (key.find(answer.line.match) != std::string::npos) {
      return &answer;
    }
  }
  return fallback;
}

absl::StatusOr<RequestId> ScriptedEngine::Submit(Request request, EventSink sink) {
  RETURN_IF_ERROR(CheckRequest(request, options_.max_model_len, options_.vocab_size));
  if (FindAnswer(request.script_key) == nullptr) {
    return absl::InvalidArgumentError(
        "no line of the script matches the last user message, and none is without `match`");
  }
  const RequestId id = next_id_.fetch_add(1);
  RETURN_IF_ERROR(inbox_.Put(
      {.id = id, .request = std::move(request), .sink = std::move(sink), .time = Clock::now()},
      kMaxStreams));
  return id;
}

EngineStats ScriptedEngine::Stats() const {
  const std::lock_guard lock(mutex_);
  return published_;
}

void ScriptedEngine::Shutdown(bool drain) {
  inbox_.Close(absl::UnavailableError("the server is shutting down"),
               drain ? StopMode::kDrain : StopMode::kAbort);
  const std::lock_guard lock(shutdown_mutex_);
  if (thread_.joinable()) thread_.join();
}

void ScriptedEngine::Run() {
  InboxContents mail;
  for (;;) {
    WaitForMail(mail);
    for (Submission& submission : mail.submissions) Start(submission);
    for (const RequestId id : mail.aborts) {
      RequestEvent event;
      event.finish = FinishReason::kAbort;
      End(id, std::move(event));
    }
    mail.submissions.clear();
    mail.aborts.clear();
    if (mail.stop == StopMode::kAbort) AbortAll();
    RunTimers();
    Publish();
    if (mail.stop != StopMode::kNone && streams_.empty()) return;
  }
}

void ScriptedEngine::WaitForMail(InboxContents& mail) {
  if (!timers_.empty()) {
    inbox_.TakeBy(timers_.top().time, mail);
  } else {
    inbox_.Take(/*wait=*/mail.stop == StopMode::kNone, mail);
  }
}

void ScriptedEngine::Start(Submission& submission) {
  auto stream = std::make_unique<Stream>();
  stream->id = submission.id;
  stream->answer = FindAnswer(submission.request.script_key);
  stream->params = std::move(submission.request.params);
  stream->sink = std::move(submission.sink);
  stream->deadline = submission.request.deadline;
  stream->prompt = std::move(submission.request.prompt);
  stream->record.submitted = submission.time;
  stream->record.scheduled = Clock::now();
  stream->record.num_prompt_tokens = static_cast<int64_t>(stream->prompt.size());
  stream->record.num_computed_prompt_tokens = stream->record.num_prompt_tokens;
  stream->due = Clock::now() + std::chrono::milliseconds(stream->answer->line.delay_ms);
  SetTimer(*stream);
  streams_.emplace(submission.id, std::move(stream));
}

void ScriptedEngine::SetTimer(const Stream& stream) {
  const auto time = stream.deadline ? std::min(stream.due, *stream.deadline) : stream.due;
  timers_.push({time, next_order_++, stream.id});
}

void ScriptedEngine::RunTimers() {
  // Timers set from now on wait for the next round, so that mail is read between rounds.
  const Clock::time_point now = Clock::now();
  const uint64_t end = next_order_;
  while (!timers_.empty() && timers_.top().time <= now && timers_.top().order < end) {
    const RequestId id = timers_.top().id;
    timers_.pop();
    const auto found = streams_.find(id);
    if (found == streams_.end()) continue;
    Stream& stream = *found->second;
    if (stream.deadline && *stream.deadline <= now) {
      RequestEvent event;
      event.finish = FinishReason::kAbort;
      event.error = "the request's deadline passed";
      End(id, std::move(event));
    } else {
      Advance(stream);
    }
  }
}

// One step: as many tokens at once as the script says, fewer at the end of the answer.
void ScriptedEngine::Advance(Stream& stream) {
  const ScriptLine& line = stream.answer->line;
  const int64_t wanted = line.tokens_per_step[stream.steps++ % line.tokens_per_step.size()];
  RequestEvent event;
  for (int64_t i = 0; i < wanted && !event.finish; ++i) {
    const auto token = NextToken(stream);
    if (!token) break;
    AddToken(stream, *token, event);
  }
  if (event.tokens.empty()) return EndAsScripted(stream);
  CountDrafts(line, static_cast<int64_t>(event.tokens.size()));
  if (event.finish) return End(stream.id, std::move(event));
  event.time = stream.record.last_token.value();
  // A late stream does not catch up in a burst.
  const auto delay = std::chrono::milliseconds(line.delay_ms);
  stream.due = std::max(stream.due, event.time - delay) + delay;
  SetTimer(stream);
  stream.sink(std::move(event));
}

// None when the script ends the answer in another way than by a token.
std::optional<int32_t> ScriptedEngine::NextToken(Stream& stream) const {
  const Answer& answer = *stream.answer;
  if (stream.next < answer.tokens.size()) return answer.tokens[stream.next++];
  if (answer.line.finish != ScriptFinish::kStop) return std::nullopt;
  const bool goes_on =
      stream.params.ignore_eos || stream.record.num_output_tokens + 1 < stream.params.min_tokens;
  if (!goes_on || answer.tokens.empty()) return options_.eos_token;
  stream.next = 1;
  return answer.tokens[0];
}

void ScriptedEngine::AddToken(Stream& stream, int32_t token, RequestEvent& event) {
  RequestRecord& record = stream.record;
  OutputToken output{.token = token, .logprob = std::nullopt, .alternatives = {}};
  const TokenLogprob certain{.token = token, .logprob = 0.0F, .rank = 1};
  if (stream.params.num_logprobs) {
    output.logprob = certain;
    if (*stream.params.num_logprobs != 0) output.alternatives = {certain};
  }
  event.tokens.push_back(std::move(output));
  record.last_token = Clock::now();
  if (!record.first_token) {
    record.first_token = record.last_token;
    counts_.prompt_tokens += record.num_prompt_tokens;
    if (stream.params.num_prompt_logprobs) {
      for (const int32_t id : stream.prompt) event.prompt_logprobs.push_back({{id, 0.0F, 1}});
      event.prompt_logprobs[0].clear();
    }
  }
  ++record.num_output_tokens;
  ++counts_.generation_tokens;
  event.finish = CheckStop(stream.params, {&options_.eos_token, 1}, token, record.num_output_tokens,
                           /*no_room=*/false);
  if (event.finish == FinishReason::kStop) event.stop_token = token;
}

// As if every token behind the first of a step had been a draft that stood.
void ScriptedEngine::CountDrafts(const ScriptLine& line, int64_t said) {
  const int64_t drafts =
      *std::max_element(line.tokens_per_step.begin(), line.tokens_per_step.end()) - 1;
  if (drafts == 0) return;
  SpeculationStats& stats = counts_.speculation;
  ++stats.rounds;
  stats.proposed_tokens += drafts;
  stats.verified_tokens += drafts;
  stats.accepted_tokens += said - 1;
  for (int64_t slot = 0; slot < drafts; ++slot) {
    ++stats.verified_per_slot[static_cast<size_t>(slot)];
    if (slot + 1 < said) ++stats.accepted_per_slot[static_cast<size_t>(slot)];
  }
}

void ScriptedEngine::EndAsScripted(const Stream& stream) {
  RequestEvent event;
  switch (stream.answer->line.finish) {
    case ScriptFinish::kStop:  // ends with a token
      break;
    case ScriptFinish::kLength:
      event.finish = FinishReason::kLength;
      break;
    case ScriptFinish::kError:
      event.finish = FinishReason::kError;
      event.error = "the script says that this request fails";
      break;
    case ScriptFinish::kDisconnect:
      event.finish = FinishReason::kAbort;
      event.disconnect = true;
      break;
  }
  End(stream.id, std::move(event));
}

void ScriptedEngine::End(RequestId id, RequestEvent event) {
  const auto found = streams_.find(id);
  if (found == streams_.end()) return;
  const std::unique_ptr<Stream> stream = std::move(found->second);
  streams_.erase(found);
  ++counts_.num_finished[static_cast<size_t>(*event.finish)];
  event.time = Clock::now();
  stream->record.finished = event.time;
  event.record = stream->record;
  stream->sink(std::move(event));
}

void ScriptedEngine::AbortAll() {
  while (!streams_.empty()) {
    RequestEvent event;
    event.finish = FinishReason::kAbort;
    event.error = "the server is shutting down";
    End(streams_.begin()->first, std::move(event));
  }
}

void ScriptedEngine::Publish() {
  const std::lock_guard lock(mutex_);
  ++counts_.num_steps;
  published_ = counts_;
  published_.num_running = static_cast<int64_t>(streams_.size());
  published_.pages_total = 1;  // no cache, never full
}

}  // namespace

std::unique_ptr<Engine> CreateScriptedEngine(ScriptedEngineOptions options) {
  return std::make_unique<ScriptedEngine>(std::move(options));
}

}  // namespace fulgur::engine

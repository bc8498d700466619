#include "engine/local_engine.h"

#include <atomic>
#include <exception>
#include <mutex>
#include <string>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/cost_probe.h"
#include "engine/inbox.h"

namespace fulgur::engine {
namespace {

class LocalEngine : public Engine {
 public:
  LocalEngine(const LocalEngineOptions& options, std::unique_ptr<ModelRunner> runner)
      : max_queued_requests_(options.max_queued_requests),
        runner_(std::move(runner)),
        core_(options.core, *runner_),
        stats_(core_.Stats()),
        thread_([this] { Run(); }) {}

  ~LocalEngine() override { Shutdown(false); }

  absl::StatusOr<RequestId> Submit(Request request, EventSink sink) override;
  void Abort(RequestId id) override { inbox_.PutAbort(id); }
  absl::Status Health() const override;
  EngineStats Stats() const override;
  int64_t MaxModelLen() const override { return core_.options().limits.max_model_len; }
  int64_t VocabSize() const override { return core_.vocab_size(); }
  void Shutdown(bool drain) override;

 private:
  void Run();
  void TakeMail(InboxContents& mail);
  absl::Status RunStep();
  void Die(const absl::Status& status);
  void Publish();

  const int64_t max_queued_requests_;
  const std::unique_ptr<ModelRunner> runner_;
  EngineCore core_;  // the thread's own, but for CheckRequest and constants
  Inbox inbox_;
  std::atomic<RequestId> next_id_{1};
  std::atomic<Clock::rep> step_start_{0};  // of the step now running; 0: none

  mutable std::mutex mutex_;  // guards the two below
  EngineStats stats_;
  absl::Status health_;

  std::mutex shutdown_mutex_;  // one joins
  std::thread thread_;
};

absl::StatusOr<RequestId> LocalEngine::Submit(Request request, EventSink sink) {
  RETURN_IF_ERROR(core_.CheckRequest(request));
  const RequestId id = next_id_.fetch_add(1);
  int64_t waiting = 0;
  {
    const std::lock_guard lock(mutex_);
    waiting = stats_.num_waiting;
  }
  Submission submission{
      .id = id, .request = std::move(request), .sink = std::move(sink), .time = Clock::now()};
  RETURN_IF_ERROR(inbox_.Put(std::move(submission), max_queued_requests_ - waiting));
  return id;
}

absl::Status LocalEngine::Health() const {
  const std::lock_guard lock(mutex_);
  return health_;
}

EngineStats LocalEngine::Stats() const {
  EngineStats stats;
  {
    const std::lock_guard lock(mutex_);
    stats = stats_;
  }
  stats.num_waiting += inbox_.num_submissions();
  stats.waiting_prompt_tokens += inbox_.num_prompt_tokens();
  if (const Clock::rep start = step_start_.load(); start != 0) {
    const auto age = Clock::now() - Clock::time_point(Clock::duration(start));
    stats.seconds_in_step = std::chrono::duration<double>(age).count();
  }
  return stats;
}

void LocalEngine::Shutdown(bool drain) {
  inbox_.Close(absl::UnavailableError("the server is shutting down"),
               drain ? StopMode::kDrain : StopMode::kAbort);
  const std::lock_guard lock(shutdown_mutex_);
  if (thread_.joinable()) thread_.join();
}

void LocalEngine::Run() {
  InboxContents mail;
  for (;;) {
    // A running engine only looks whether there is mail; an idle one sleeps until there is.
    const bool idle = !core_.HasWork() && mail.stop == StopMode::kNone;
    inbox_.Take(/*wait=*/idle, mail);
    TakeMail(mail);
    if (mail.stop == StopMode::kAbort) {
      core_.EndAll(FinishReason::kAbort, "the server is shutting down");
    }
    if (mail.stop != StopMode::kNone && !core_.HasWork()) break;
    if (const absl::Status status = RunStep(); !status.ok()) return Die(status);
    Publish();
  }
  Publish();
}

void LocalEngine::TakeMail(InboxContents& mail) {
  for (Submission& submission : mail.submissions) {
    core_.Add(submission.id, std::move(submission.request), std::move(submission.sink),
              submission.time);
  }
  for (const RequestId id : mail.aborts) core_.Abort(id);
  mail.submissions.clear();
  mail.aborts.clear();
}

absl::Status LocalEngine::RunStep() {
  step_start_ = Clock::now().time_since_epoch().count();
  absl::Status status;
  try {
    status = core_.Step();
  } catch (const std::exception& error) {
    status = absl::InternalError(absl::StrCat("a step failed: ", error.what()));
  }
  step_start_ = 0;
  return status;
}

void LocalEngine::Die(const absl::Status& status) {
  const std::string reason = absl::StrCat("the engine failed: ", status.message());
  {
    const std::lock_guard lock(mutex_);
    health_ = absl::InternalError(reason);
  }
  inbox_.Close(absl::UnavailableError(reason), StopMode::kAbort);
  InboxContents rest;
  inbox_.Take(/*wait=*/false, rest);
  TakeMail(rest);
  core_.EndAll(FinishReason::kError, reason);
  Publish();
}

void LocalEngine::Publish() {
  const std::lock_guard lock(mutex_);
  stats_ = core_.Stats();
}

}  // namespace

absl::StatusOr<std::unique_ptr<Engine>> CreateLocalEngine(const LocalEngineOptions& options,
                                                          std::unique_ptr<ModelRunner> runner) {
  LocalEngineOptions complete = options;
  SpeculationOptions& speculation = complete.core.speculation;
  if (speculation.enabled() && speculation.adaptive && speculation.costs.forward.empty()) {
    ASSIGN_OR_RETURN(speculation.costs, MeasureCosts(complete.core, *runner));
  }
  RETURN_IF_ERROR(ValidateOptions(complete.core, *runner));
  return std::make_unique<LocalEngine>(complete, std::move(runner));
}

}  // namespace fulgur::engine

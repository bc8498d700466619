// One accepted job on its way through the engine: submits its choices, turns token events into
// updates of an Answer, ends what is over.
//
// Network thread only. Kept alive by the dispatcher while the engine works for it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "server/answer.h"
#include "server/dispatcher.h"
#include "server/job.h"
#include "server/metrics.h"
#include "text/response_decoder.h"

namespace fulgur::server {

// What a generation needs of its server.
struct GenerationEnvironment {
  const ServingContext* serving;
  Dispatcher* dispatcher;
  Metrics* metrics;
  absl::Time arrival;
  std::string id;  // of the answer, for the log
};

class Generation : public EventReceiver, public std::enable_shared_from_this<Generation> {
 public:
  // `answer` writes to `response`; `job` is the one the answer was made with. `on_end` is called
  // once, when nothing more will be written.
  Generation(GenerationEnvironment environment, std::unique_ptr<Job> job,
             std::unique_ptr<Answer> answer, std::shared_ptr<ResponseStream> response);

  void Start(std::function<void()> on_end);

  void OnEvent(size_t choice, SubmissionId id, engine::RequestEvent event) override;

  // The server stops: choices under way end with finish reason "abort".
  void AbortForShutdown();

  void KeepAlive() { answer_->KeepAlive(); }

 private:
  struct Choice {
    size_t index = 0;
    SubmissionId submission = 0;  // 0: not with the engine
    std::optional<text::ResponseDecoder> decoder;
    std::vector<int32_t> output;  // all tokens so far
    ChoiceUpdate carried;         // goes out with the next event
    bool call_forced = false;
    bool finished = false;
    absl::Time first_token = absl::InfinitePast();
    absl::Time last_token = absl::InfinitePast();
  };

  const JobPrompt& PromptOf(const Choice& choice) const;
  Choice MakeChoice(size_t index) const;
  absl::Status StartChoices();
  absl::Status SubmitChoice(Choice& choice);
  int64_t RoomLeft(const Choice& choice) const;
  engine::Request MakeRequest(const Choice& choice) const;
  std::shared_ptr<sample::TokenConstraint> MakeConstraint(const Choice& choice) const;

  void TakeTokens(Choice& choice, engine::RequestEvent& event, ChoiceUpdate* update);
  void TakeToken(Choice& choice, engine::OutputToken token, ChoiceUpdate* update);
  bool HidesToken(int32_t token) const;
  bool TakeDueTokens(Choice& choice, ChoiceUpdate* update);
  bool Splice(Choice& choice, ChoiceUpdate* update);
  void MeasureTokens(Choice& choice);

  void FinishChoice(Choice& choice, engine::FinishReason reason, std::optional<int32_t> stop_token,
                    ChoiceUpdate* update);
  void LogLosses(const Choice& choice, engine::FinishReason reason) const;
  void LogOutput(const Choice& choice, const ChoiceFinish& finish) const;
  ChoiceFinish FinishOf(const Choice& choice, engine::FinishReason reason,
                        std::optional<int32_t> stop_token) const;
  void MeasureFinish(const Choice& choice, FinishedReason reason);
  void Deliver(Choice& choice, ChoiceUpdate update);

  void Fail(const absl::Status& error);
  void OnDisconnect();
  void AbortChoices(FinishedReason reason);
  void End();

  GenerationEnvironment environment_;
  std::unique_ptr<Job> job_;
  std::unique_ptr<Answer> answer_;
  std::shared_ptr<ResponseStream> response_;
  std::function<void()> on_end_;

  std::vector<Choice> choices_;  // those started so far
  size_t num_finished_ = 0;
  bool ended_ = false;
  Usage usage_;
};

}  // namespace fulgur::server

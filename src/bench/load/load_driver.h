// Sends the sessions of one cell in the rhythm of its plan. Everything happens on the thread that
// calls Run(), which handles sockets and timers.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>

#include "bench/load/answer_reader.h"
#include "bench/load/client_lag.h"
#include "bench/load/exchange.h"
#include "bench/load/http_client.h"
#include "bench/load/load_spec.h"
#include "bench/load/random.h"
#include "bench/load/session_queue.h"

namespace fulgur::bench {

struct LoadHooks {
  std::function<void(FinishedRequest)> on_request;  // must not block
  std::function<bool()> interrupted;                // asked some fifty times a second
  std::function<void(const std::string&)> warn;     // one sentence
};

class LoadDriver {
 public:
  // All references must outlive the driver. `sessions` gives the warm-up ones first.
  LoadDriver(HttpClient& client, SessionQueue& sessions, LoadSpec spec, Transport transport,
             LoadHooks hooks, LiveCounts& live);
  ~LoadDriver();

  LoadOutcome Run();

  const ClientLag& lag() const { return lag_; }

 private:
  struct Conversation;
  struct Pending {
    int64_t scheduled_ns = 0;
    std::optional<PlannedSession> session;  // none: the next one
    std::optional<int64_t> user;
  };

  // Phases.
  void Begin();
  void BeginProfiling();
  void BeginClosedLoop(int64_t now);
  void ScheduleArrivals();
  void ScheduleNextOfTrace();
  void BeginBurst(int64_t now);
  void BeginUsers(int64_t now);
  void Watch();
  void Stop(std::string reason);
  void CheckDone();

  // Sending.
  void SlotFree(int64_t now);
  void AddPending(Pending pending);
  void Pump();
  bool TakeSession(Pending& pending);
  void StartConversation(Pending pending);
  void StartTurn(Conversation& conversation, int64_t scheduled_ns);
  HttpCall MakeCall(const Conversation& conversation) const;
  void PlanCancellation(int64_t conversation_id);

  // Ends.
  void OnRequestEnd(int64_t id, FinishedRequest finished);
  bool ContinueConversation(Conversation& conversation, const FinishedRequest& finished);
  void EndConversation(int64_t id);
  void Account(FinishedRequest& finished);

  void At(int64_t time_ns, std::function<void()> task);
  void Post(std::function<void()> task);
  bool in_warmup() const { return !outcome_.began; }
  std::string NewId();

  HttpClient& client_;
  SessionQueue& sessions_;
  const LoadSpec spec_;
  const Transport transport_;
  const LoadHooks hooks_;
  LiveCounts& live_;
  AnswerReader reader_{/*keep_text=*/true};
  ClientLag lag_;
  RandomStream ids_;
  RandomStream cancels_;

  std::unordered_map<int64_t, std::unique_ptr<Conversation>> conversations_;
  std::deque<Pending> pending_;
  LoadOutcome outcome_;
  int64_t next_id_ = 0;
  int64_t warmup_left_ = 0;
  int64_t warmup_done_ = 0;
  int64_t warmup_latency_ns_ = 0;  // sum
  int64_t waiting_slots_ = 0;      // for the end of the warm-up
  int64_t staggered_ = 0;          // slots whose first send was planned
  int64_t delayed_ = 0;            // timers that will add something to send
  int64_t prefilling_ = 0;
  size_t next_arrival_ = 0;
  int64_t last_event_ns_ = 0;
  int64_t finished_ = 0;
  int64_t failed_ = 0;
  bool exhausted_ = false;  // no sessions are left
  bool closing_ = false;    // the time is over: nothing new is sent
  bool stopping_ = false;   // nothing is waited for
  bool done_ = false;
  bool warned_of_stall_ = false;
  bool retry_planned_ = false;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace fulgur::bench

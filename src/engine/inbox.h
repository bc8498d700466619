// The queue into an engine's thread: requests, aborts, and the wish to stop.
//
// Any thread puts; one thread takes. After Close nothing more goes in, so that each request that
// went in gets its last event.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <vector>

#include "absl/status/status.h"
#include "engine/engine.h"

namespace fulgur::engine {

struct Submission {
  RequestId id = 0;
  Request request;
  EventSink sink;
  Clock::time_point time;
};

enum class StopMode { kNone, kDrain, kAbort };

struct InboxContents {
  std::vector<Submission> submissions;
  std::vector<RequestId> aborts;
  StopMode stop = StopMode::kNone;

  bool empty() const { return submissions.empty() && aborts.empty() && stop == StopMode::kNone; }
};

class Inbox {
 public:
  // kUnavailable if closed (the reason given to Close), or if `limit` submissions are queued.
  absl::Status Put(Submission submission, int64_t limit);
  void PutAbort(RequestId id);

  // Closes the inbox with the status that Put returns from now on. The taker sees the mode; a drain
  // may turn into an abort, not the other way round.
  void Close(absl::Status reason, StopMode mode);

  // Moves everything out; with `wait`, sleeps until something is there. `contents` must be empty
  // but may have capacity. The stop mode stays visible in later calls.
  void Take(bool wait, InboxContents& contents);
  // The same, waiting until a time at most.
  void TakeBy(Clock::time_point latest, InboxContents& contents);

  // Submissions that the engine has not taken yet, and the tokens of their prompts.
  int64_t num_submissions() const;
  int64_t num_prompt_tokens() const;

 private:
  void MoveOut(InboxContents& contents);

  mutable std::mutex mutex_;
  std::condition_variable ready_;
  InboxContents contents_;
  bool news_ = false;
  absl::Status closed_;  // OK: open
  StopMode stop_ = StopMode::kNone;
};

}  // namespace fulgur::engine

#include "engine/inbox.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_format.h"

namespace fulgur::engine {

absl::Status Inbox::Put(Submission submission, int64_t limit) {
  {
    const std::lock_guard lock(mutex_);
    if (!closed_.ok()) return closed_;
    if (static_cast<int64_t>(contents_.submissions.size()) >= limit) {
      return absl::UnavailableError("the engine's queue is full; try again later");
    }
    contents_.submissions.push_back(std::move(submission));
    news_ = true;
  }
  ready_.notify_one();
  return absl::OkStatus();
}

void Inbox::PutAbort(RequestId id) {
  {
    const std::lock_guard lock(mutex_);
    contents_.aborts.push_back(id);
    news_ = true;
  }
  ready_.notify_one();
}

void Inbox::Close(absl::Status reason, StopMode mode) {
  {
    const std::lock_guard lock(mutex_);
    if (closed_.ok()) closed_ = std::move(reason);
    stop_ = std::max(stop_, mode);
    news_ = true;
  }
  ready_.notify_one();
}

void Inbox::Take(bool wait, InboxContents& contents) {
  std::unique_lock lock(mutex_);
  if (wait) ready_.wait(lock, [this] { return news_; });
  MoveOut(contents);
}

void Inbox::TakeBy(Clock::time_point latest, InboxContents& contents) {
  std::unique_lock lock(mutex_);
  ready_.wait_until(lock, latest, [this] { return news_; });
  MoveOut(contents);
}

void Inbox::MoveOut(InboxContents& contents) {
  news_ = false;
  std::swap(contents_.submissions, contents.submissions);
  std::swap(contents_.aborts, contents.aborts);
  contents.stop = stop_;
}

int64_t Inbox::num_submissions() const {
  const std::lock_guard lock(mutex_);
  return static_cast<int64_t>(contents_.submissions.size());
}

int64_t Inbox::num_prompt_tokens() const {
  const std::lock_guard lock(mutex_);
  int64_t tokens = 0;
  for (const Submission& submission : contents_.submissions) {
    tokens += static_cast<int64_t>(submission.request.prompt.size());
  }
  return tokens;
}

}  // namespace fulgur::engine

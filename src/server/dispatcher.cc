#include "server/dispatcher.h"

#include <utility>

#include "server/api_error.h"

namespace fulgur::server {

Dispatcher::Dispatcher(engine::Engine& engine, std::function<void(std::function<void()>)> post,
                       std::function<void(const engine::RequestRecord&)> on_record)
    : engine_(engine), on_record_(std::move(on_record)) {
  queue_ =
      std::make_shared<EventQueue>([this, post = std::move(post)] { post([this] { Drain(); }); });
}

Dispatcher::~Dispatcher() { queue_->Close(); }

absl::StatusOr<SubmissionId> Dispatcher::Submit(engine::Request request, size_t choice,
                                                std::shared_ptr<EventReceiver> receiver) {
  SubmissionId id = next_id_++;
  auto sink = [queue = queue_, id](engine::RequestEvent event) {
    queue->Push(id, std::move(event));
  };
  auto accepted = engine_.Submit(std::move(request), std::move(sink));
  if (!accepted.ok()) return SubmitError(accepted.status());
  submissions_[id] = {*accepted, choice, std::move(receiver)};
  return id;
}

absl::Status Dispatcher::SubmitError(const absl::Status& status) const {
  if (!engine_.Health().ok()) {
    return EngineError("The server had an error while processing your request.");
  }
  switch (status.code()) {
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kResourceExhausted:
      return RuleError(std::string(status.message()));
    case absl::StatusCode::kUnavailable:
      return OverloadedError(std::string(status.message()));
    default:
      return EngineError(std::string(status.message()));
  }
}

void Dispatcher::Abort(SubmissionId id) {
  auto found = submissions_.find(id);
  if (found == submissions_.end()) return;
  engine_.Abort(found->second.request);
  submissions_.erase(found);
}

void Dispatcher::Drain() {
  for (auto& [id, event] : queue_->Take()) {
    if (event.record) on_record_(*event.record);
    auto found = submissions_.find(id);
    if (found == submissions_.end()) continue;
    std::shared_ptr<EventReceiver> receiver = found->second.receiver;
    size_t choice = found->second.choice;
    if (event.finish) submissions_.erase(found);
    receiver->OnEvent(choice, id, std::move(event));
  }
}

}  // namespace fulgur::server

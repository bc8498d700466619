// Submits to the engine and hands every event to the generation it belongs to.
//
// Network thread only, except for the queue inside. The engine's sinks hold no generation, only a
// number: an event that comes after the client left finds nobody and is dropped.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "engine/engine.h"
#include "server/event_queue.h"

namespace fulgur::server {

class EventReceiver {
 public:
  virtual ~EventReceiver() = default;
  // `choice` and `id` are those of the Submit that the event answers.
  virtual void OnEvent(size_t choice, SubmissionId id, engine::RequestEvent event) = 0;
};

class Dispatcher {
 public:
  // `post` runs a task on the network thread. `on_record` gets what became of every request, also
  // of those whose client has left.
  Dispatcher(engine::Engine& engine, std::function<void(std::function<void()>)> post,
             std::function<void(const engine::RequestRecord&)> on_record);
  ~Dispatcher();

  // Queues a request with the engine; its events go to `receiver`, with `choice`, until the last
  // one or Abort. Errors are ready for the client.
  absl::StatusOr<SubmissionId> Submit(engine::Request request, size_t choice,
                                      std::shared_ptr<EventReceiver> receiver);

  // Ends a request and drops its remaining events.
  void Abort(SubmissionId id);

  size_t num_submissions() const { return submissions_.size(); }

  engine::Engine& engine() { return engine_; }

 private:
  struct Submission {
    engine::RequestId request;
    size_t choice;
    std::shared_ptr<EventReceiver> receiver;
  };

  void Drain();
  absl::Status SubmitError(const absl::Status& status) const;

  engine::Engine& engine_;
  std::function<void(const engine::RequestRecord&)> on_record_;
  std::shared_ptr<EventQueue> queue_;
  absl::flat_hash_map<SubmissionId, Submission> submissions_;
  SubmissionId next_id_ = 1;
};

}  // namespace fulgur::server

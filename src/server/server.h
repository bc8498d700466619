// The HTTP server in front of an engine: OpenAI endpoints, health, metrics.
//
// Start() returns once the sockets listen. The server owns its threads (one for the network, a few
// for parsing and tokenising) and none of its arguments: engine and tokenizer must outlive it.
// All methods may be called from any thread but not from within a handler.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "engine/engine.h"
#include "server/server_options.h"

namespace fulgur::text {
class Tokenizer;
}

namespace fulgur::server {

// What the answers say about the model, and what its token streams mean.
struct ModelInfo {
  std::string path;     // shown as `root` by /v1/models
  std::string version;  // of this program: /version, system_fingerprint
  // End-of-sequence ids (the tokenizer's and generation_config.json's). The engine stops at them by
  // itself; here they decide what `stop_reason` shows and which ids are no text.
  std::vector<int32_t> eos_token_ids;
};

class Server {
 public:
  virtual ~Server() = default;  // stops at once if Stop() was not called

  // `tokenizer` is null with --skip-tokenizer-init: then prompts are token ids, answers are token
  // ids, and everything that needs text is refused. Errors name the option that is wrong (address
  // in use, unreadable certificate, no served name ...).
  static absl::StatusOr<std::unique_ptr<Server>> Start(ServerOptions options,
                                                       engine::Engine& engine,
                                                       const text::Tokenizer* tokenizer,
                                                       ModelInfo model);

  // The TCP port that is listened on (of use when the options say 0); 0 for a unix socket.
  virtual int port() const = 0;

  // Requests accepted and not yet fully answered.
  virtual int64_t requests_in_flight() const = 0;

  // Stops accepting, lets running requests go on for `drain`, then aborts the rest, closes every
  // connection and joins the threads. Call it before Engine::Shutdown. Idempotent.
  virtual void Stop(absl::Duration drain) = 0;
};

}  // namespace fulgur::server

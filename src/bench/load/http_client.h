// Many HTTP/1.1 requests at once on one thread, with the time of every read.
//
// Boost.Beast rather than libcurl's multi interface: the time stamp is taken when the read returns,
// before anything else happens to the bytes, and connections, retries and time-outs are ours to
// count.
//
// Thread rules: one thread calls Run(); everything but Post() and Stop() is for that thread, or for
// the time before Run().
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"

namespace fulgur::bench {

struct HttpTarget {
  std::string host;
  std::string port;
  bool tls = false;
  std::string path;  // what stands behind the address, without the last '/'
};

// Takes "http://host:8000/base" apart; without a scheme it is http.
absl::StatusOr<HttpTarget> ParseUrl(const std::string& url);

enum class ConnectionReuse {
  kPooled,  // the connection used last is used next
  kNever,   // a new connection a request
  kSticky,  // one connection a conversation
};

struct HttpClientOptions {
  ConnectionReuse reuse = ConnectionReuse::kPooled;
  int64_t connect_timeout_ns = 10'000'000'000;
  bool verify_tls = true;
};

struct HttpCall {
  size_t target = 0;  // index into the targets
  std::string method = "POST";
  std::string path;  // the whole path
  std::vector<std::pair<std::string, std::string>> headers;
  std::string body;
  std::string conversation;  // for ConnectionReuse::kSticky
  int64_t timeout_ns = 0;    // from the start of the call to its last byte
};

enum class CallOutcome {
  kComplete,
  kConnectFailed,
  kClosed,     // the connection ended before the answer did
  kGarbage,    // what came is no HTTP
  kTimedOut,   // HttpCall::timeout_ns
  kCancelled,  // Cancel()
};

struct CallEnd {
  CallOutcome outcome = CallOutcome::kComplete;
  std::string detail;  // what the system said
  int64_t time_ns = 0;
};

// Hears what becomes of one call. Must live until OnEnd, which comes exactly once and last.
class CallObserver {
 public:
  virtual ~CallObserver() = default;
  // Just before the first byte goes to the socket: a connection is there. Again if the call is
  // repeated, because an idle connection turned out to be closed by the server.
  virtual void OnStart(int64_t time_ns, bool repeated) = 0;
  virtual void OnHeaders(int status, std::string_view reason, std::string_view content_type,
                         int64_t time_ns) = 0;
  virtual void OnBody(std::string_view piece, int64_t time_ns) = 0;
  virtual void OnEnd(const CallEnd& end) = 0;
};

using CallId = uint64_t;

class HttpClient {
 public:
  virtual ~HttpClient() = default;

  // Resolves the names of all targets, once.
  static absl::StatusOr<std::unique_ptr<HttpClient>> Create(std::vector<HttpTarget> targets,
                                                            HttpClientOptions options);

  virtual CallId Start(HttpCall call, CallObserver* observer) = 0;

  // Ends the call; OnEnd comes before this returns. Unknown ids are ignored.
  virtual void Cancel(CallId id) = 0;

  // Runs `task` at a time of the monotonic clock; times in the past come next.
  virtual void RunAt(int64_t time_ns, std::function<void()> task) = 0;

  virtual void Post(std::function<void()> task) = 0;

  // Handles calls, timers and posted tasks until Stop().
  virtual void Run() = 0;
  virtual void Stop() = 0;
};

// One request and its whole answer. Not for the time of a measurement: it runs the client itself.
struct SimpleAnswer {
  int status = 0;
  std::string body;
};
absl::StatusOr<SimpleAnswer> Fetch(HttpClient& client, HttpCall call);

}  // namespace fulgur::bench

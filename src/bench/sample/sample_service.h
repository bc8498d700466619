// The sampler over HTTP: a test host starts and stops it, fetches logs and compares clocks.
//
//   GET  /time                      {"wall_ns", "monotonic_ns"}
//   POST /start                     {"tag", "interval_ms", "format", "devices", "process"}: all but
//                                   the tag may be left out
//   POST /stop                      ends it; answers with what /status says
//   GET  /status                    {"running", "tag", "ticks", "missed", ..., "files"}
//   GET  /log?tag=TAG&format=seed   the log's text; native without `format`
//   GET  /health
//
// One sampler runs at a time. All methods may be called from any thread.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "bench/sample/sampler.h"

namespace fulgur::bench {

struct SampleServiceOptions {
  std::string host;        // empty: all addresses
  int port = 0;            // 0: any free one
  std::string api_key;     // empty: open
  SamplerOptions sampler;  // folder, device library and what a request leaves out
};

class SampleService {
 public:
  virtual ~SampleService() = default;  // stops

  static absl::StatusOr<std::unique_ptr<SampleService>> Start(SampleServiceOptions options);

  virtual int port() const = 0;

  // Ends a running sampler and the server.
  virtual void Stop() = 0;
};

}  // namespace fulgur::bench

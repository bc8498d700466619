// What a server tells about itself outside of a measurement: its models, its counters.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "bench/load/http_client.h"
#include "bench/load/request_body.h"
#include "bench/stats/metric.h"

namespace fulgur::bench {

struct ServerAddress {
  HttpTarget target;
  std::vector<std::pair<std::string, std::string>> headers;  // authorisation and others
};

struct ServedModel {
  std::string name;
  std::optional<int64_t> max_model_len;
};

// Prometheus counters by name, added up over their labels except `position`.
using Counters = std::map<std::string, double>;

class ServerInfo {
 public:
  // `client` has `address` as its first target and must outlive this.
  ServerInfo(HttpClient& client, ServerAddress address)
      : client_(client), address_(std::move(address)) {}

  // Asks until the server answers or `limit_s` is over.
  absl::Status Wait(double limit_s);

  absl::StatusOr<std::vector<ServedModel>> Models();

  // None if the server has no metrics or does not answer in time.
  std::optional<Counters> ScrapeCounters();

  // Until no request runs or waits by the server's own counters, at most `limit_s`. Without such
  // counters it returns at once.
  void WaitUntilIdle(double limit_s);

  absl::Status ResetPrefixCache();

  // Sends one request of `shape` with this text and one token of output.
  struct Probe {
    int status = 0;
    std::string body;
    std::optional<int64_t> prompt_tokens;
  };
  absl::StatusOr<Probe> Ask(RequestShape shape, const std::string& path, const std::string& text);

 private:
  absl::StatusOr<SimpleAnswer> Send(const std::string& method, const std::string& path,
                                    std::string body, double limit_s);

  HttpClient& client_;
  ServerAddress address_;
};

Counters ParseCounters(std::string_view text);

// What the server counted between two moments: acceptance of drafts and prefix cache hits.
void AddCounterMetrics(const Counters& before, const Counters& after, MetricMap& metrics);

}  // namespace fulgur::bench

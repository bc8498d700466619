// Sends the questions of a data set to a server and collects its answers.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "bench/eval/eval_item.h"
#include "nlohmann/json.hpp"

namespace fulgur::bench {

struct AskOptions {
  std::string url = "http://127.0.0.1:8000";
  std::string api_key;
  std::string model;  // empty: the server's first
  std::string prompt_template;
  int64_t concurrency = 8;
  int64_t samples = 1;  // answers per question
  double temperature = 0.0;
  double top_p = 1.0;
  int64_t max_tokens = 4096;
  std::optional<bool> thinking;  // chat_template_kwargs.thinking; absent: the server's default
  std::optional<int64_t> seed;   // plus the sample's number
  nlohmann::json extra = nlohmann::json::object();  // merged over the body
  int64_t timeout_s = 1800;                         // of one answer
};

struct Answer {
  size_t item = 0;  // index into the data
  int64_t sample = 0;
  std::string text = {};  // visible
  std::string reasoning = {};
  std::string finish_reason = {};
  std::string error = {};  // one sentence if there is no answer; then the rest is empty
  std::optional<int64_t> prompt_tokens = {};
  std::optional<int64_t> completion_tokens = {};
  double latency_ms = 0.0;
};

// Called after each answer with how many are there.
using AskProgress = std::function<void(int64_t done, int64_t failed)>;

// Every sample of every item, in order of item and sample. Failed requests are answers with an
// error. An error only if nothing can be asked at all. `cancelled` ends early with what is there.
absl::StatusOr<std::vector<Answer>> AskAll(const AskOptions& options, const EvalData& data,
                                           const AskProgress& progress,
                                           const std::function<bool()>& cancelled);

// The body of one request.
nlohmann::json RequestBody(const AskOptions& options, const EvalItem& item, int64_t sample);

}  // namespace fulgur::bench

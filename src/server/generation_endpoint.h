// POST /v1/chat/completions and /v1/completions: from the call to a running Generation.
//
// Network thread only.
#pragma once

#include <cstdint>
#include <memory>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "server/core.h"
#include "server/generation.h"

namespace fulgur::server {

class GenerationEndpoint {
 public:
  explicit GenerationEndpoint(Core& core) : core_(core) {}

  void Chat(Call call);
  void Completion(Call call);

  // The server stops: everything under way ends with finish reason "abort", what comes later is
  // refused.
  void Abort();

  // Writes to streams that have been silent, so that proxies keep them open.
  void KeepAlive();

 private:
  using MakeJob = absl::StatusOr<Job> (*)(const ServingContext&, const RequestFields&);
  using MakeAnswer = std::unique_ptr<Answer> (*)(AnswerContext);

  struct Kind {
    MakeJob make_job;
    MakeAnswer make_answer;
    std::string_view id_prefix;
  };

  void Handle(const Kind& kind, Call call);
  void Start(const Kind& kind, Call call, Job job);
  absl::Status Admit(const HttpRequest& request) const;
  absl::Status CheckQueue(const Job& job);
  std::string MakeId(const Kind& kind, const Call& call, const GenerationRequest& request) const;
  void Log(const std::string& id, const Job& job) const;

  Core& core_;
  bool stopping_ = false;
  uint64_t next_key_ = 0;
  absl::flat_hash_map<uint64_t, std::shared_ptr<Generation>> running_;
};

}  // namespace fulgur::server
